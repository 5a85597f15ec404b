#include "sim/trace_file.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include "sim/archive.h"
#include "sim/json_codec.h"

namespace lockstep::sim {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  // of a trace, packed or unpacked
constexpr std::int64_t kMaxLength = std::int64_t{1} << 24;
constexpr Tokens kMooncakeBlock{512};

// What both formats consist of; a trace's further keys are nobody's concern here.
struct Numbers {
  Codec<Tokens> input = integer<Tokens>(1, kMaxLength);
  Codec<Tokens> output = integer<Tokens>(0, kMaxLength);
  Codec<double> time = number(0, 1e15);
  Codec<std::vector<std::uint64_t>> ids = array_of(integer<std::uint64_t>(0));
};

template <class V>
bool read_key(const Cursor& cursor, std::string_view key, const Codec<V>& codec, V& value) {
  const Json* member = cursor.value().find(key);
  if (!member) return missing_key(cursor, std::string(key), codec.what);
  return codec.read(cursor.member(key, *member), value);
}

bool check_id_count(const Cursor& cursor, std::int64_t wanted, std::string_view rule,
                    const TraceRequest& request) {
  if (std::ssize(request.blocks) == wanted) return true;
  const Cursor ids = cursor.member("hash_ids", *cursor.value().find("hash_ids"));
  return ids.fail("expected " + std::to_string(wanted) + " ids (" + std::string(rule) + " of " +
                  std::to_string(request.block.value()) + " tokens, input " +
                  std::to_string(request.input.value()) + "), found " +
                  std::to_string(request.blocks.size()));
}

// ---------------------------------------------------------------- Mooncake JSON lines

bool read_mooncake(const Cursor& cursor, const Numbers& numbers, TraceRequest& request) {
  if (!cursor.value().as<Json::Object>()) return cursor.expected("an object");
  double timestamp = 0;
  request.block = kMooncakeBlock;
  return read_key(cursor, "timestamp", numbers.time, timestamp) &&
         read_key(cursor, "input_length", numbers.input, request.input) &&
         read_key(cursor, "output_length", numbers.output, request.output) &&
         read_key(cursor, "hash_ids", numbers.ids, request.blocks) &&
         check_id_count(cursor, (request.input + request.block - Tokens{1}) / request.block,
                        "one per block, the last may be partial,", request);
}

Result<std::vector<TraceRequest>> parse_lines(std::string_view text, const std::string& source) {
  const Numbers numbers;
  std::vector<TraceRequest> requests;
  std::size_t line_number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++line_number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    ReadState state{source + ":" + std::to_string(line_number), {}};
    const Result<Json> json = parse_json(line, state.source);
    if (!json) return json.error();
    TraceRequest request;
    if (!read_mooncake(Cursor(*json, state), numbers, request)) return *state.error;
    request.name = "line " + std::to_string(line_number);
    requests.push_back(std::move(request));
  }
  return requests;
}

// ---------------------------------------------------------------- agent sessions

class SessionReader {
 public:
  SessionReader(std::string scope, std::vector<TraceRequest>& requests)
      : scope_(std::move(scope)), requests_(requests) {}

  bool read(const Cursor& cursor) {
    return read_key(cursor, "block_size", block_size_, block_) && read_requests(cursor, scope_);
  }

 private:
  // Appends the requests in order of time; a subagent's stand where the subagent stands.
  bool read_requests(const Cursor& cursor, const std::string& prefix) {
    const Json* member = cursor.value().find("requests");
    if (!member) return missing_key(cursor, "requests", "an array");
    const Cursor list = cursor.member("requests", *member);
    std::vector<std::pair<double, std::size_t>> order;
    const bool timed = read_array(list, 0, [&](const Cursor& item) {
      if (!item.value().as<Json::Object>()) return item.expected("an object");
      order.emplace_back(0.0, order.size());
      return read_key(item, "t", numbers_.time, order.back().first);
    });
    if (!timed) return false;
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const Json::Array& items = *member->as<Json::Array>();
    for (const auto& [time, i] : order) {
      if (!read_item(list.item(i, items[i]), prefix, i)) return false;
    }
    return true;
  }

  bool read_item(const Cursor& item, const std::string& prefix, std::size_t position) {
    const Json* type = item.value().find("type");
    const auto* word = type ? type->as<std::string>() : nullptr;
    if (!word || *word != "subagent") return read_request(item, prefix, position);
    std::string agent;
    return read_key(item, "agent_id", name_, agent) && read_requests(item, prefix + "/" + agent);
  }

  bool read_request(const Cursor& item, const std::string& prefix, std::size_t position) {
    TraceRequest request;
    request.name = prefix + "/" + std::to_string(position + 1);
    request.scope = scope_;
    request.block = block_;
    if (!read_key(item, "in", numbers_.input, request.input) ||
        !read_key(item, "out", numbers_.output, request.output) ||
        !read_key(item, "hash_ids", numbers_.ids, request.blocks) ||
        !check_id_count(item, request.whole_blocks(), "one per whole block", request)) {
      return false;
    }
    requests_.push_back(std::move(request));
    return true;
  }

  const Numbers numbers_;
  const Codec<std::string> name_ = name_text();
  const Codec<Tokens> block_size_ = integer<Tokens>(1, kMaxLength);
  std::string scope_;
  Tokens block_;
  std::vector<TraceRequest>& requests_;
};

// "folder/trace_0365.json" is the session trace_0365.
std::string stem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

Result<void> parse_session(std::string_view text, const std::string& source,
                           std::vector<TraceRequest>& requests) {
  const Result<Json> json = parse_json(text, source);
  if (!json) return json.error();
  ReadState state{source, {}};
  const Cursor cursor(*json, state);
  if (!json->as<Json::Object>()) {
    cursor.expected("an object");
    return *state.error;
  }
  if (!SessionReader(stem(source), requests).read(cursor)) return *state.error;
  return {};
}

// ---------------------------------------------------------------- files

// JSON lines, unless the first line is no document of its own or is a whole session.
bool is_lines(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == text.npos) return false;
  const std::string_view line = text.substr(start, text.find('\n', start) - start);
  const Result<Json> first = parse_json(line, "");
  return first.ok() && first->as<Json::Object>() && !first->find("requests");
}

Result<std::vector<TraceRequest>> parse_plain(std::string_view text, const std::string& source) {
  if (is_lines(text)) return parse_lines(text, source);
  std::vector<TraceRequest> requests;
  if (const Result<void> session = parse_session(text, source, requests); !session) {
    return session.error();
  }
  return requests;
}

Result<std::vector<TraceRequest>> parse_archive(std::string_view bytes, const std::string& source) {
  const Result<std::vector<TarMember>> members = list_tar(bytes, source);
  if (!members) return members.error();
  std::vector<TraceRequest> requests;
  for (const TarMember& member : *members) {
    if (!member.name.ends_with(".json")) continue;
    const Result<void> session =
        parse_session(member.content, source + "/" + member.name, requests);
    if (!session) return session.error();
  }
  return requests;
}

Result<std::string> read_standard_input() {
  std::string bytes;
  std::vector<char> block(std::size_t{1} << 16);
  while (std::cin) {
    std::cin.read(block.data(), static_cast<std::streamsize>(block.size()));
    bytes.append(block.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (bytes.size() > kMaxBytes) {
      return Error{"standard input: expected at most " + std::to_string(kMaxBytes) +
                   " bytes, found more"};
    }
  }
  return bytes;
}

}  // namespace

Result<std::vector<TraceRequest>> parse_trace(std::string bytes, const std::string& source) {
  if (is_xz(bytes) || source.ends_with(".xz")) {
    Result<std::string> unpacked = unpack_xz(bytes, source, kMaxBytes);
    if (!unpacked) return unpacked.error();
    bytes = std::move(unpacked).value();
  }
  if (bytes.find_first_not_of(" \t\r\n") == bytes.npos) {
    return Error{source + ": expected at least one request, found an empty file"};
  }
  Result<std::vector<TraceRequest>> requests =
      is_tar(bytes) ? parse_archive(bytes, source) : parse_plain(bytes, source);
  if (requests && requests->empty()) {
    return Error{source + ": expected at least one request, found none"};
  }
  return requests;
}

Result<std::vector<TraceRequest>> read_trace(const std::string& path) {
  const bool standard_input = path == "-";
  Result<std::string> bytes =
      standard_input ? read_standard_input() : read_text_file(path, kMaxBytes);
  if (!bytes) return bytes.error();
  return parse_trace(std::move(bytes).value(), standard_input ? "standard input" : path);
}

}  // namespace lockstep::sim
