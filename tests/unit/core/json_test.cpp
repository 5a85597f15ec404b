#include "core/json.h"

#include <limits>

#include "catch.h"

namespace lockstep {
namespace {

std::string error_of(std::string_view text) {
  const Result<Json> json = parse_json(text, "x.json");
  REQUIRE_FALSE(json.ok());
  return json.error().message;
}

std::string echo(std::string_view text) {
  const Result<Json> json = parse_json(text, "x.json");
  REQUIRE(json.ok());
  return to_text(*json);
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

}  // namespace

TEST_CASE("JSON is read and written without loss, members in their order") {
  for (std::string_view text :
       {R"({"b": 1, "a": [true, false, null], "c": {"d": -5}})",
        R"([0.1, 3e-13, 9007199254740991])",
        R"(["\"quoted\" back\\slash", "line\nbreak\ttab", "\u0001"])", "[]", "{}", "\"\""}) {
    REQUIRE(echo(text) == text);
  }
}

TEST_CASE("escapes of the text become the characters they mean") {
  const Result<Json> json = parse_json(R"("\u00e9\/\u0041")", "x.json");
  REQUIRE(*json->as<std::string>() == "\u00e9/A");
}

TEST_CASE("numbers that are not finite are written as null") {
  REQUIRE(to_text(Json(std::numeric_limits<double>::quiet_NaN())) == "null");
  REQUIRE(to_text(Json(std::numeric_limits<double>::infinity())) == "null");
  REQUIRE(to_text(Json(0.5)) == "0.5");
}

TEST_CASE("an integer beyond 64 bits is no integer") {
  const Result<Json> json = parse_json("18446744073709551615", "x.json");
  REQUIRE(json->as<std::int64_t>() == nullptr);
  REQUIRE(*json->as<double>() == 18446744073709551615.0);
}

TEST_CASE("duplicate keys are refused at every level") {
  REQUIRE(error_of(R"({"a": 1, "a": 2})") == "x.json: /a: expected this key once, found it again");
  REQUIRE(error_of(R"({"s": [0, {"k/y": {"~": 1, "~": 1}}]})") ==
          "x.json: /s/1/k~1y/~0: expected this key once, found it again");
  REQUIRE(echo(R"([{"a": 1}, {"a": 2}])") == R"([{"a": 1}, {"a": 2}])");
}

TEST_CASE("32 levels of nesting are read, 33 are refused") {
  REQUIRE(echo(nested(32)) == nested(32));
  REQUIRE(error_of(nested(33)).find("expected at most 32 levels of nesting") != std::string::npos);
  // Deep enough to overflow the stack of a recursive reader.
  REQUIRE(error_of(nested(5'000'000)).find("expected at most 32 levels") != std::string::npos);
}

TEST_CASE("what is no JSON document is refused with line and column") {
  REQUIRE(error_of("") == "x.json: expected a JSON document, found an empty file");
  REQUIRE(error_of("{\"a\": 1,\n  oops}").find("x.json: parse error at line 2, column 3") == 0);
  REQUIRE(error_of("{\"a\": [1, 2").find("unexpected end of input") != std::string::npos);
  REQUIRE(error_of("{} {}").find("x.json: parse error at line 1, column 4") == 0);
  REQUIRE(error_of("\"\xff\"").find("x.json: parse error") == 0);
  REQUIRE(error_of("1e999").find("x.json: number overflow") == 0);
}

TEST_CASE("pretty text breaks what does not fit on a line") {
  const Result<Json> json = parse_json(R"({"a": {"b": 1, "c": [1, 2]}, "d": []})", "x.json");
  REQUIRE(to_pretty_text(*json) ==
          "{\n"
          "  \"a\": {\n"
          "    \"b\": 1,\n"
          "    \"c\": [1, 2]\n"
          "  },\n"
          "  \"d\": []\n"
          "}\n");
  const Json wide = Json::Array(40, Json(12345));
  REQUIRE(to_pretty_text(wide).find("[\n  12345,\n") == 0);
  REQUIRE(to_text(*parse_json(to_pretty_text(wide), "x.json")) == to_text(wide));
}

TEST_CASE("a file that cannot be read is named") {
  REQUIRE(read_text_file("/no/such/file.json", 10).error().message ==
          "/no/such/file.json: cannot be opened, expected a readable file");
  REQUIRE(read_text_file("/tmp", 10).error().message == "/tmp: expected a file, found a directory");
  REQUIRE(read_text_file(LOCKSTEP_SOURCE_DIR "/CMakeLists.txt", 10).error().message ==
          LOCKSTEP_SOURCE_DIR "/CMakeLists.txt: expected at most 10 bytes, found more");
}

}  // namespace lockstep
