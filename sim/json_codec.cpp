#include "sim/json_codec.h"

#include <cmath>
#include <limits>

namespace lockstep::sim {

std::string Cursor::pointer() const {
  if (!parent_) return {};
  const bool in_object = parent_->value_->as<Json::Object>() != nullptr;
  return parent_->pointer() + "/" + (in_object ? pointer_token(key_) : std::to_string(index_));
}

std::string Cursor::place() const {
  const std::string here = pointer();
  return here.empty() ? state_->source : state_->source + ": " + here;
}

bool Cursor::expected(std::string_view what) const {
  return fail("expected " + std::string(what) + ", found " + describe(*value_));
}

bool Cursor::fail(std::string_view message) const {
  if (!state_->error) state_->error = Error{place() + ": " + std::string(message)};
  return false;
}

std::string describe_range(std::int64_t min, std::int64_t max) {
  if (max == kMaxExactInteger) return "an integer >= " + std::to_string(min);
  return "an integer from " + std::to_string(min) + " to " + std::to_string(max);
}

Json integer_schema(std::int64_t min, std::int64_t max) {
  return Json::Object{{"type", "integer"}, {"minimum", min}, {"maximum", max}};
}

bool read_integer(const Cursor& cursor, std::int64_t min, std::int64_t max, std::int64_t& value) {
  const auto* number = cursor.value().as<std::int64_t>();
  if (number && *number >= min && *number <= max) return value = *number, true;
  // A number beyond the largest needs to hear of it although the range is named by its minimum.
  const bool beyond = number ? *number > max : cursor.value().as<double>() != nullptr;
  if (beyond && max == kMaxExactInteger) {
    return cursor.expected("an integer from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return cursor.expected(describe_range(min, max));
}

Codec<double> number(double min, double max) {
  const std::string what = "a number from " + to_text(Json(min)) + " to " + to_text(Json(max));
  const auto read = [min, max, what](const Cursor& cursor, double& value) {
    const auto* whole = cursor.value().as<std::int64_t>();
    const auto* real = cursor.value().as<double>();
    if (!whole && !real) return cursor.expected(what);
    const double found = whole ? static_cast<double>(*whole) : *real;
    if (!(found >= min && found <= max)) return cursor.expected(what);
    value = found;
    return true;
  };
  Json schema = Json::Object{{"type", "number"}, {"minimum", min}, {"maximum", max}};
  return {read, [](const double& value) { return Json(value); }, std::move(schema), what};
}

Codec<bool> boolean() {
  const auto read = [](const Cursor& cursor, bool& value) {
    const auto* flag = cursor.value().as<bool>();
    if (!flag) return cursor.expected("true or false");
    value = *flag;
    return true;
  };
  return {read, [](const bool& value) { return Json(value); }, Json::Object{{"type", "boolean"}},
          "true or false"};
}

namespace {

Codec<std::string> string_codec(std::size_t min_length, const std::string& what) {
  const auto read = [min_length, what](const Cursor& cursor, std::string& value) {
    const auto* text = cursor.value().as<std::string>();
    if (!text || text->size() < min_length) return cursor.expected(what);
    value = *text;
    return true;
  };
  Json::Object schema{{"type", "string"}};
  if (min_length > 0) schema.push_back({"minLength", min_length});
  return {read, [](const std::string& value) { return Json(value); }, Json(std::move(schema)),
          what};
}

}  // namespace

Codec<std::string> text() {
  return string_codec(0, "a string");
}
Codec<std::string> name_text() {
  return string_codec(1, "a string that is not empty");
}

bool read_array(const Cursor& cursor, std::size_t min_items,
                const std::function<bool(const Cursor& item)>& read_item) {
  const auto* items = cursor.value().as<Json::Array>();
  if (!items) return cursor.expected("an array");
  if (items->size() < min_items) {
    return cursor.fail("expected an array of at least " + std::to_string(min_items) +
                       " items, found " + std::to_string(items->size()));
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    if (!read_item(cursor.item(i, (*items)[i]))) return false;
  }
  return true;
}

bool read_map(const Cursor& cursor,
              const std::function<bool(const std::string& key, const Cursor& item)>& read_item) {
  const auto* members = cursor.value().as<Json::Object>();
  if (!members) return cursor.expected("an object");
  for (const JsonMember& member : *members) {
    const Cursor place = cursor.member(member.key, member.value);
    if (member.key.empty()) return place.fail("expected a name that is not empty");
    if (!read_item(member.key, place)) return false;
  }
  return true;
}

bool check_keys(const Cursor& cursor, const std::vector<std::string_view>& known) {
  for (const JsonMember& member : *cursor.value().as<Json::Object>()) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    std::string message = "unknown key, expected one of";
    for (const std::string_view& key : known) {
      message += (&key == &known.front() ? " " : ", ") + std::string(key);
    }
    return cursor.member(member.key, member.value).fail(message);
  }
  return true;
}

bool missing_key(const Cursor& cursor, const std::string& name, const std::string& what) {
  return cursor.fail("expected the key \"" + name + "\" (" + what + "), found none");
}

Json with_note(Json schema, const std::string& meaning, const std::optional<Json>& fallback) {
  Json::Object members{{"description", meaning}};
  if (fallback) members.push_back({"default", *fallback});
  for (const JsonMember& member : *schema.as<Json::Object>()) members.push_back(member);
  return members;
}

Json object_schema(Json::Object properties, Json::Array required) {
  Json::Object schema{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) schema.push_back({"required", std::move(required)});
  schema.push_back({"additionalProperties", false});
  return schema;
}

}  // namespace lockstep::sim
