#include "sim/trace_file.h"

#include <algorithm>
#include <set>

#include "catch.h"
#include "core/json.h"

namespace lockstep::sim {
namespace {

const std::string kTraces = LOCKSTEP_SOURCE_DIR "/scenarios/traces/";

std::vector<TraceRequest> parsed(const std::string& text) {
  const Result<std::vector<TraceRequest>> requests = parse_trace(text, "t");
  INFO((requests ? std::string() : requests.error().message));
  REQUIRE(requests.ok());
  return *requests;
}

std::string error_of(const std::string& text) {
  const Result<std::vector<TraceRequest>> requests = parse_trace(text, "t");
  REQUIRE_FALSE(requests.ok());
  return requests.error().message;
}

std::string octal(std::size_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0; value /= 8) text[i] = static_cast<char>('0' + value % 8);
  return text;
}

// One member of a ustar archive, written by hand after POSIX.1-1988.
std::string tar_member(const std::string& name, const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(124, 11, octal(content.size(), 11));
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  std::size_t sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  header.replace(148, 7, octal(sum, 6) + '\0');
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

constexpr const char* kLine =
    R"({"timestamp": 5, "input_length": 1025, "output_length": 7, "hash_ids": [0, 4, 9]})";

constexpr const char* kSession = R"({
  "id": "s", "block_size": 4, "hash_id_scope": "local",
  "requests": [
    {"t": 0.0, "type": "n", "in": 9, "out": 1, "hash_ids": [1, 2]},
    {"t": 7.5, "type": "n", "in": 4, "out": 3, "hash_ids": [1]},
    {"t": 2.0, "type": "subagent", "agent_id": "helper", "requests": [
      {"t": 0.0, "type": "n", "in": 3, "out": 2, "hash_ids": []},
      {"t": 1.0, "type": "n", "in": 8, "out": 2, "hash_ids": [1, 5]}]}]})";

}  // namespace

TEST_CASE("Mooncake JSON lines") {
  const auto requests = parsed(
      std::string(kLine) + "\n\n" +
      R"({"timestamp": 6, "input_length": 512, "output_length": 1, "hash_ids": [0]})" + "\n");
  REQUIRE(requests.size() == 2);
  REQUIRE(requests[0].name == "line 1");
  REQUIRE(requests[0].input == Tokens{1025});
  REQUIRE(requests[0].output == Tokens{7});
  REQUIRE(requests[0].block == Tokens{512});
  REQUIRE(requests[0].blocks == std::vector<std::uint64_t>{0, 4, 9});
  REQUIRE(requests[0].whole_blocks() == 2);
  REQUIRE(requests[0].scope.empty());
  REQUIRE(requests[1].name == "line 3");
  REQUIRE(requests[1].whole_blocks() == 1);
}

TEST_CASE("a session's requests come in order of time, a subagent's in its place") {
  const Result<std::vector<TraceRequest>> requests = parse_trace(kSession, "folder/trace_7.json");
  REQUIRE(requests.ok());
  std::vector<std::string> names;
  for (const TraceRequest& request : *requests) {
    names.push_back(request.name);
    REQUIRE(request.scope == "trace_7");
    REQUIRE(request.block == Tokens{4});
  }
  REQUIRE(names == std::vector<std::string>{"trace_7/1", "trace_7/helper/1", "trace_7/helper/2",
                                            "trace_7/2"});
  REQUIRE((*requests)[2].blocks == std::vector<std::uint64_t>{1, 5});
  REQUIRE((*requests)[0].input == Tokens{9});
}

TEST_CASE("a tar archive is its sessions in archive order") {
  const std::string archive = tar_member("d/", "", '5') + tar_member("d/b.json", kSession) +
                              tar_member("d/notes.txt", "not a session") +
                              tar_member("d/a.json", kSession) + std::string(1024, '\0');
  const auto requests = parsed(archive);
  REQUIRE(requests.size() == 8);
  REQUIRE(requests[0].scope == "b");
  REQUIRE(requests[4].scope == "a");

  REQUIRE(error_of(archive.substr(0, 1100)).find("of d/b.json, found 76") != std::string::npos);
  REQUIRE(error_of(archive.substr(0, archive.size() - 1024))
              .find("expected a tar header or the end mark") != std::string::npos);
  std::string damaged = archive;
  damaged[512] = 'D';
  REQUIRE(error_of(damaged) ==
          "t: byte 512 of the archive: expected a tar header, found damaged data");
}

TEST_CASE("bad traces are refused with line or pointer") {
  const std::string good = std::string(kLine) + "\n";
  REQUIRE(error_of("") == "t: expected at least one request, found an empty file");
  REQUIRE(error_of(" \n\n") == "t: expected at least one request, found an empty file");
  REQUIRE(error_of(good +
                   R"({"timestamp": 5, "input_length": -1, "output_length": 7, "hash_ids": []})") ==
          "t:2: /input_length: expected an integer from 1 to 16777216, found -1");
  REQUIRE(
      error_of(good +
               R"({"timestamp": 5, "input_length": 1, "output_length": -7, "hash_ids": [0]})") ==
      "t:2: /output_length: expected an integer from 0 to 16777216, found -7");
  REQUIRE(error_of(good + R"({"timestamp": 5, "input_length": 1, "hash_ids": [0]})") ==
          "t:2: expected the key \"output_length\" (an integer from 0 to 16777216), found none");
  REQUIRE(
      error_of(good + "\n" +
               R"({"timestamp": "5", "input_length": 1, "output_length": 1, "hash_ids": [0]})") ==
      "t:3: /timestamp: expected a number from 0 to 1e+15, found \"5\"");
  REQUIRE(
      error_of(good +
               R"({"timestamp": 5, "input_length": 1, "output_length": 1, "hash_ids": [-1]})") ==
      "t:2: /hash_ids/0: expected an integer >= 0, found -1");
  REQUIRE(
      error_of(good +
               R"({"timestamp": 5, "input_length": 513, "output_length": 1, "hash_ids": [0]})") ==
      "t:2: /hash_ids: expected 2 ids (one per block, the last may be partial, of 512 tokens, "
      "input 513), "
      "found 1");
  REQUIRE(error_of(good + "[]") == "t:2: expected an object, found an array");
  REQUIRE(error_of(good + R"({"timestamp": 5, "inp)").find("t:2: parse error at line 1, column") ==
          0);
  REQUIRE(error_of(R"({"timestamp": 5, "inp)").find("t: parse error at line 1, column") == 0);
  REQUIRE(error_of("hello").find("t: parse error at line 1, column 1") == 0);
}

TEST_CASE("bad sessions are refused with their pointer") {
  REQUIRE(error_of(R"({"block_size": 64, "requests": []})") ==
          "t: expected at least one request, found none");
  REQUIRE(error_of(R"({"requests": []})") ==
          "t: expected the key \"block_size\" (an integer from 1 to 16777216), found none");
  REQUIRE(
      error_of(
          R"({"block_size": 4,
                      "requests": [{"t": 0, "in": 9, "out": 1, "hash_ids": [1, 2, 3]}]})") ==
      "t: /requests/0/hash_ids: expected 2 ids (one per whole block of 4 tokens, input 9), found "
      "3");
  REQUIRE(error_of(R"({"block_size": 4, "requests": [{"t": 0, "out": 1, "hash_ids": []}]})") ==
          "t: /requests/0: expected the key \"in\" (an integer from 1 to 16777216), found none");
  REQUIRE(error_of(R"({"block_size": 4, "requests": [{"in": 1, "out": 1, "hash_ids": []}]})") ==
          "t: /requests/0: expected the key \"t\" (a number from 0 to 1e+15), found none");
  REQUIRE(error_of(R"({"block_size": 4, "requests": [3]})") ==
          "t: /requests/0: expected an object, found 3");
  REQUIRE(
      error_of(
          R"({"block_size": 4, "requests": [{"t": 0, "type": "subagent", "agent_id": "a"}]})") ==
      "t: /requests/0: expected the key \"requests\" (an array), found none");
  REQUIRE(error_of(
              R"({"block_size": 4, "requests": [{"t": 0, "type": "subagent", "agent_id": "a",
                      "requests": [7]}]})") ==
          "t: /requests/0/requests/0: expected an object, found 7");
}

TEST_CASE("a file that is no trace is named") {
  REQUIRE(read_trace("/no/such.jsonl").error().message ==
          "/no/such.jsonl: cannot be opened, expected a readable file");
}

TEST_CASE("the chat trace has the facts that were computed independently") {
  const Result<std::vector<TraceRequest>> requests =
      read_trace(kTraces + "mooncake_conversation.jsonl.xz");
  REQUIRE(requests.ok());
  REQUIRE(requests->size() == 12031);
  std::size_t references = 0;
  std::set<std::uint64_t> distinct;
  for (const TraceRequest& request : *requests) {
    references += request.blocks.size();
    distinct.insert(request.blocks.begin(), request.blocks.end());
    REQUIRE(request.blocks.front() == 0);
  }
  REQUIRE(references == 288500);
  REQUIRE(distinct.size() == 182790);
}

TEST_CASE("the agent sessions have the facts that were computed independently") {
  const Result<std::vector<TraceRequest>> requests = read_trace(kTraces + "agentic_small.tar.xz");
  INFO((requests ? std::string() : requests.error().message));
  REQUIRE(requests.ok());
  REQUIRE(requests->size() == 1073);
  std::set<std::string> sessions;
  std::set<std::string> names;
  std::size_t references = 0;
  std::size_t of_subagents = 0;
  for (const TraceRequest& request : *requests) {
    sessions.insert(request.scope);
    names.insert(request.name);
    references += request.blocks.size();
    of_subagents += request.name.find("/agent_") != std::string::npos;
  }
  REQUIRE(sessions.size() == 52);
  REQUIRE(names.size() == 1073);
  REQUIRE(references == 899350);
  REQUIRE(of_subagents == 56);
}

TEST_CASE("a truncated or damaged xz file is refused") {
  const std::string path = kTraces + "mooncake_conversation.jsonl.xz";
  const Result<std::string> bytes = read_text_file(path, std::size_t{1} << 30);
  REQUIRE(bytes.ok());
  REQUIRE(error_of(bytes->substr(0, bytes->size() / 2))
              .find("t: expected a complete xz file, found the file ends too early after ") == 0);
  REQUIRE(parse_trace(std::string(kLine), "plain.xz").error().message ==
          "plain.xz: expected a complete xz file, found something else after 0 bytes unpacked");
  std::string damaged = *bytes;
  damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
  REQUIRE(error_of(damaged).find("t: expected a complete xz file, found damaged data after ") == 0);
}

}  // namespace lockstep::sim
