#include "core/json.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace lockstep {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kLineWidth = 100;

// Builds the document from nlohmann's parser events. Its own document keeps only the last of
// duplicate keys and says nothing; here every key is seen.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  bool null() override { return add(Json()); }
  bool boolean(bool flag) override { return add(Json(flag)); }
  bool number_integer(number_integer_t number) override { return add(Json(number)); }
  bool number_unsigned(number_unsigned_t number) override {
    if (number > static_cast<std::uint64_t>(INT64_MAX))
      return add(Json(static_cast<double>(number)));
    return add(Json(number));
  }
  bool number_float(number_float_t number, const string_t&) override { return add(Json(number)); }
  bool string(string_t& text) override { return add(Json(std::move(text))); }
  bool binary(binary_t&) override { return fail("expected no binary value"); }
  bool start_object(std::size_t) override { return open(Json::Object()); }
  bool start_array(std::size_t) override { return open(Json::Array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    auto& members = std::get<Json::Object>(open_.back().container->value);
    const bool first = open_.back().keys.insert(key).second;
    members.push_back({std::move(key), Json()});
    return first || fail("expected this key once, found it again");
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string_view what =
        error.what();  // "[json.exception...] parse error at line 1, column 2: ..."
    const std::size_t start = what.find("] ");
    error_ = Error{source_ + ": " + std::string(what.substr(start == what.npos ? 0 : start + 2))};
    return false;
  }

  Result<Json> result() && {
    if (error_) return *error_;
    return std::move(root_);
  }

 private:
  struct Open {
    Json* container;  // stays in place: only the innermost container grows
    std::set<std::string> keys;
  };

  bool add(Json json) { return place(std::move(json)), true; }

  Json* place(Json json) {
    if (open_.empty()) return &(root_ = std::move(json));
    Json& parent = *open_.back().container;
    if (auto* items = std::get_if<Json::Array>(&parent.value))
      return &items->emplace_back(std::move(json));
    return &(std::get<Json::Object>(parent.value).back().value = std::move(json));
  }

  bool open(Json container) {
    Json* placed = place(std::move(container));
    if (open_.size() == kMaxDepth) return fail("expected at most 32 levels of nesting, found more");
    open_.push_back({placed, {}});
    return true;
  }

  bool close() { return open_.pop_back(), true; }

  bool fail(std::string_view message) {
    std::string pointer;
    for (const Open& open : open_) {
      if (const auto* items = open.container->as<Json::Array>()) {
        pointer += "/" + std::to_string(items->size() - 1);
      } else {
        pointer += "/" + pointer_token(open.container->as<Json::Object>()->back().key);
      }
    }
    error_ = Error{source_ + ": " + pointer + ": " + std::string(message)};
    return false;
  }

  const std::string& source_;
  Json root_;
  std::vector<Open> open_;
  std::optional<Error> error_;
};

void append_quoted(std::string_view text, std::string& out) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          out += "\\u00";
          out += hex[byte >> 4];
          out += hex[byte & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_number(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, end);
}

void append_text(const Json& json, std::string& out) {
  if (json.as<std::nullptr_t>()) out += "null";
  if (const auto* flag = json.as<bool>()) out += *flag ? "true" : "false";
  if (const auto* number = json.as<std::int64_t>()) out += std::to_string(*number);
  if (const auto* number = json.as<double>()) append_number(*number, out);
  if (const auto* text = json.as<std::string>()) append_quoted(*text, out);
  if (const auto* items = json.as<Json::Array>()) {
    out += '[';
    for (const Json& item : *items) {
      if (&item != items->data()) out += ", ";
      append_text(item, out);
    }
    out += ']';
  }
  if (const auto* members = json.as<Json::Object>()) {
    out += '{';
    for (const JsonMember& member : *members) {
      if (&member != members->data()) out += ", ";
      append_quoted(member.key, out);
      out += ": ";
      append_text(member.value, out);
    }
    out += '}';
  }
}

bool is_container(const Json& json) {
  return json.as<Json::Array>() || json.as<Json::Object>();
}

bool holds_containers(const Json& json) {
  if (const auto* items = json.as<Json::Array>()) {
    return std::any_of(items->begin(), items->end(), is_container);
  }
  const auto* members = json.as<Json::Object>();
  return members && std::any_of(members->begin(), members->end(), [](const JsonMember& member) {
           return is_container(member.value);
         });
}

void append_pretty(const Json& json, std::size_t indent, std::size_t column, std::string& out) {
  if (!holds_containers(json)) {
    const std::string line = to_text(json);
    if (!is_container(json) || column + line.size() <= kLineWidth) {
      out += line;
      return;
    }
  }
  const std::string inner(indent + 2, ' ');
  const auto* items = json.as<Json::Array>();
  out += items ? "[\n" : "{\n";
  if (items) {
    for (const Json& item : *items) {
      out += inner;
      append_pretty(item, indent + 2, indent + 2, out);
      out += &item == &items->back() ? "\n" : ",\n";
    }
  } else {
    const auto& members = *json.as<Json::Object>();
    for (const JsonMember& member : members) {
      std::string head = inner;
      append_quoted(member.key, head);
      out += head + ": ";
      append_pretty(member.value, indent + 2, head.size() + 2, out);
      out += &member == &members.back() ? "\n" : ",\n";
    }
  }
  out += std::string(indent, ' ') + (items ? "]" : "}");
}

}  // namespace

const Json* Json::find(std::string_view key) const {
  const auto* members = as<Object>();
  if (!members) return nullptr;
  for (const JsonMember& member : *members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Result<Json> parse_json(std::string_view text, const std::string& source) {
  if (text.empty()) return Error{source + ": expected a JSON document, found an empty file"};
  Builder builder(source);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder).result();
}

std::string to_text(const Json& json) {
  std::string out;
  append_text(json, out);
  return out;
}

std::string to_pretty_text(const Json& json) {
  std::string out;
  append_pretty(json, 0, 0, out);
  return out += '\n';
}

std::string describe(const Json& json) {
  constexpr std::size_t longest = 60;
  if (json.as<Json::Array>()) return "an array";
  if (json.as<Json::Object>()) return "an object";
  std::string text = to_text(json);
  if (text.size() <= longest) return text;
  return text.substr(0, longest) + "...";
}

std::string pointer_token(std::string_view key) {
  std::string token;
  for (char c : key) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{path + ": expected a file, found a directory"};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{path + ": cannot be opened, expected a readable file"};
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > max_bytes) {
      return Error{path + ": expected at most " + std::to_string(max_bytes) + " bytes, found more"};
    }
  }
  return text;
}

}  // namespace lockstep
