// Bad scenarios: what is refused, where, and in which words.
#include <filesystem>
#include <fstream>

#include "catch.h"
#include "sim/scenario_reader.h"

namespace lockstep::sim {
namespace {

struct BadInput {
  const char* text;   // the whole scenario
  const char* error;  // what follows "x.json: "
};

std::string error_of(const std::string& text) {
  const Result<Scenario> scenario = parse_scenario(text, "x.json");
  INFO(text);
  REQUIRE_FALSE(scenario.ok());
  const std::string& message = scenario.error().message;
  REQUIRE(message.substr(0, 8) == "x.json: ");
  return message.substr(8);
}

// A scenario that is good but for `members`.
std::string with(const std::string& members) {
  return R"({"version": 1, "name": "x", )" + members + "}";
}

// Good prompts and one request r, then `members`.
std::string with_request(const std::string& members) {
  return with(
      R"("prompts": {"A": {"random": 8}},
           "steps": [{"submit": "r", "prompt": "A", "decode": 1}], )" +
      members);
}

std::string with_step(const std::string& step) {
  return with(
      R"("prompts": {"A": {"random": 8}},
           "steps": [{"submit": "r", "prompt": "A", "decode": 1}, )" +
      step + "]");
}

void refuse_all(const std::vector<BadInput>& inputs, std::string (*wrap)(const std::string&)) {
  for (const BadInput& input : inputs) {
    INFO(input.text);
    REQUIRE(error_of(wrap(input.text)) == input.error);
  }
}

}  // namespace

TEST_CASE("keys and values at the top are checked") {
  REQUIRE(parse_scenario("[]", "x.json").error().message ==
          "x.json: expected an object, found an array");
  REQUIRE(parse_scenario("{}", "x.json").error().message ==
          "x.json: expected the key \"version\" (the integer 1), found none");
  REQUIRE(parse_scenario(R"({"version": 1, "name": "x"})", "x.json").error().message ==
          "x.json: expected the key \"steps\" (an array), found none");
  REQUIRE(error_of(R"({"version": 2})") == "/version: expected the integer 1, found 2");
  REQUIRE(error_of(R"({"version": 1, "name": ""})") ==
          "/name: expected a string that is not empty, found \"\"");
  REQUIRE(error_of(R"({"version": 1, "name": "x", "stepz": []})") ==
          "/stepz: unknown key, expected one of $schema, version, name, about, seed, slow, model, "
          "ranks, "
          "cache, store, schedule, speculation, prompts, steps, faults, defects, expect");
  REQUIRE(error_of(R"({"version": 1, "version": 1})") ==
          "/version: expected this key once, found it again");
}

TEST_CASE("types and ranges are checked") {
  refuse_all(
      {
          {R"("seed": -1)", "/seed: expected an integer >= 0, found -1"},
          {R"("seed": 9007199254740992)",
           "/seed: expected an integer from 0 to 9007199254740991, found 9007199254740992"},
          {R"("seed": 1.5)", "/seed: expected an integer from 0 to 9007199254740991, found 1.5"},
          {R"("seed": "1")", "/seed: expected an integer >= 0, found \"1\""},
          {R"("slow": 1)", "/slow: expected true or false, found 1"},
          {R"("ranks": 0)", "/ranks: expected an integer from 1 to 64, found 0"},
          {R"("model": 3)", "/model: expected the name of a preset or an object, found 3"},
          {R"("model": {"layers": []})",
           "/model/layers: expected an array of at least 1 items, found 0"},
          {R"("model": {"window": 0})",
           "/model/window: expected an integer from 1 to 16777216, found 0"},
          {R"("cache": [])", "/cache: expected an object, found an array"},
          {R"("cache": {"page": "a"})",
           "/cache/page: expected an integer from 1 to 16777216, found \"a\""},
          {R"("cache": {"page": 128.0})",
           "/cache/page: expected an integer from 1 to 16777216, found 128"},
          {R"("cache": {"page": null})",
           "/cache/page: expected an integer from 1 to 16777216, found null"},
          {R"("cache": {"full_pages": -1})",
           "/cache/full_pages: expected an integer from 0 to 16777216, found -1"},
          {R"("cache": {"ahead": 2})", "/cache/ahead: expected an integer from 0 to 1, found 2"},
          {R"("speculation": [{"draft": 65}])",
           "/speculation/0/draft: expected an integer from 0 to 64, found 65"},
          {R"("speculation": [{"draft": 2, "accept": 2}, {"draft": 1, "accept": 2}])",
           "/speculation/1/accept: expected at most the 1 tokens drafted, found 2"},
          {R"("cache": {"publish": "late"})",
           "/cache/publish: expected one of \"at_commit\", \"after_load\", found \"late\""},
          {R"("cache": {"page": 1, "page": 2})",
           "/cache/page: expected this key once, found it again"},
          {R"("store": {"kind": "disk"})", "/store/kind: expected \"memory\", found \"disk\""},
          {R"("store": {"latency_us": -1})",
           "/store/latency_us: expected a number from 0 to 1e+09, found -1"},
          {R"("schedule": {"mode": "lifo"})",
           "/schedule/mode: expected one of \"fifo\", \"random\", \"priority\", \"depth_first\", "
           "found "
           "\"lifo\""},
          {R"("schedule": {"jitter": 1.5})",
           "/schedule/jitter: expected a number from 0 to 1, found 1.5"},
          {R"("defects": "all")", "/defects: expected an array, found \"all\""},
          {R"("defects": [""])", "/defects/0: expected a string that is not empty, found \"\""},
      },
      [](const std::string& members) { return with(members + R"(, "steps": [])"); });
}

TEST_CASE("a model must be one that exists") {
  for (const auto& [model, pointer] : {std::pair(R"("no-such")", "/model"),
                                       std::pair(R"({"preset": "no-such"})", "/model/preset")}) {
    const std::string error = error_of(with("\"steps\": [], \"model\": " + std::string(model)));
    INFO(error);
    REQUIRE(error.find(std::string(pointer) + ": expected the name of a preset, one of ") == 0);
    REQUIRE(error.find("fingerprint") != std::string::npos);
    REQUIRE(error.ends_with("found \"no-such\""));
  }
}

TEST_CASE("prompts are checked") {
  refuse_all(
      {
          {R"("A": 3)", "/prompts/A: expected an object, found 3"},
          {R"("": {"random": 1})", "/prompts/: expected a name that is not empty"},
          {R"("A": {})",
           "/prompts/A: expected exactly one of the keys \"random\", \"tokens\", \"from\", "
           "\"output_of\", "
           "found an object"},
          {R"("A": {"random": 1, "tokens": [1]})",
           "/prompts/A: expected exactly one of the keys \"random\", \"tokens\", \"from\", "
           "\"output_of\", "
           "found an object"},
          {R"("A": {"tokens": [1], "seed": 1})",
           "/prompts/A: expected the key \"seed\" only beside \"random\", found an object"},
          {R"("A": {"random": 0})",
           "/prompts/A/random: expected an integer from 1 to 16777216, found 0"},
          {R"("A": {"tokens": []})",
           "/prompts/A/tokens: expected an array of at least 1 items, found 0"},
          {R"("A": {"tokens": [1, -2]})",
           "/prompts/A/tokens/1: expected an integer from 0 to 4294967295, found -2"},
          {R"("A": {"random": 1, "then": [{"random": 1}, {"seed": 1}]})",
           "/prompts/A/then/1: expected the key \"random\" (an integer from 1 to 16777216), found "
           "none"},
          {R"("a/b": {"from": "Z"})",
           "/prompts/a~1b/from: expected the name of a prompt, found \"Z\""},
          {R"("A": {"output_of": "r9"})",
           "/prompts/A/output_of: expected the name of a request, found \"r9\""},
          {R"("A": {"from": "B"}, "B": {"from": "C"}, "C": {"from": "A"})",
           "/prompts/A/from: expected a prompt that does not start with itself, found the cycle "
           "back to "
           "\"A\""},
          {R"("A": {"from": "B"}, "B": {"from": "B"})",
           "/prompts/A/from: expected a prompt that does not start with itself, found the cycle "
           "back to "
           "\"B\""},
      },
      [](const std::string& prompts) {
        return with("\"prompts\": {" + prompts + "}, \"steps\": []");
      });
}

TEST_CASE("steps are checked") {
  refuse_all(
      {
          {R"(3)",
           "/steps/1: expected an object with one of the keys \"submit\", \"run\", \"flush\", "
           "\"hold\", "
           "\"release\", \"evict\", \"fork\", \"cancel\", \"retract\", \"restart\", \"pick\", "
           "found 3"},
          {R"({"run": "idle", "flush": "device"})",
           "/steps/1/flush: unknown key, expected one of run"},
          {R"({"run": "forever"})",
           "/steps/1/run: expected one of \"idle\", \"drain\", found \"forever\""},
          {R"({"run": {}})",
           "/steps/1/run: expected exactly one of the keys \"steps\", \"until\", found an object"},
          {R"({"run": {"steps": 0}})", "/steps/1/run/steps: expected an integer >= 1, found 0"},
          {R"({"run": {"until": "r:sleeping"}})",
           "/steps/1/run/until: expected \"request:point\", the point one of matched, looked_up, "
           "loaded, "
           "committed, landed, copied, first_token, finished, found \"r:sleeping\""},
          {R"({"run": {"until": "s:matched"}})",
           "/steps/1/run/until: expected a request that an earlier step submitted, found \"s\""},
          {R"({"flush": "store"})", "/steps/1/flush: expected \"device\", found \"store\""},
          {R"({"submit": "r", "prompt": "A", "decode": 1})",
           "/steps/1/submit: expected a name that no earlier request has, found \"r\""},
          {R"({"submit": "s", "prompt": "Z", "decode": 1})",
           "/steps/1/prompt: expected the name of a prompt, found \"Z\""},
          {R"({"submit": "s", "prompt": "A"})",
           "/steps/1: expected the key \"decode\" (an integer from 1 to 16777216), found none"},
          {R"({"submit": "s", "prompt": "A", "decode": 0})",
           "/steps/1/decode: expected an integer from 1 to 16777216, found 0"},
          {R"({"hold": "s", "at": "matched"})",
           "/steps/1/hold: expected a request that an earlier step submitted, found \"s\""},
          {R"({"release": "s"})",
           "/steps/1/release: expected a request that an earlier step submitted, found \"s\""},
          {R"({"cancel": "s"})",
           "/steps/1/cancel: expected a request that an earlier step submitted, found \"s\""},
          {R"({"retract": "s"})",
           "/steps/1/retract: expected a request that an earlier step submitted, found \"s\""},
          {R"({"fork": "s", "as": "t", "at": 1, "decode": 1})",
           "/steps/1/fork: expected a request that an earlier step submitted, found \"s\""},
          {R"({"fork": "r", "as": "r", "at": 1, "decode": 1})",
           "/steps/1/as: expected a name that no earlier request has, found \"r\""},
          {R"({"evict": {"from": "device", "component": "mamba"}})",
           "/steps/1/evict: expected either the key \"count\" or the keys \"prompt\" and \"at\", "
           "found an "
           "object"},
          {R"({"evict": {"from": "device", "component": "kv", "count": 1}})",
           "/steps/1/evict/component: expected one of \"full\", \"swa\", \"mamba\", found \"kv\""},
          {R"({"evict": {"from": "device", "component": "full", "prompt": "Z", "at": 1}})",
           "/steps/1/evict/prompt: expected the name of a prompt, found \"Z\""},
          {R"({"evict": {"from": "store", "component": "full", "rank": 1, "count": 1}})",
           "/steps/1/evict/rank: expected a rank below 1, found 1"},
          {R"({"restart": {}})",
           "/steps/1/restart: expected at least one of the keys \"engine\", \"store\", found an "
           "object"},
          {R"({"restart": {"engine": {"cache": {"page": 0}}}})",
           "/steps/1/restart/engine/cache/page: expected an integer from 1 to 16777216, found 0"},
      },
      with_step);
}

TEST_CASE("a prompt made of an output needs its request submitted before") {
  REQUIRE(
      error_of(with(R"("prompts": {"A": {"random": 8}, "D": {"output_of": "r"}, "E": {"from": "D"}},
      "steps": [{"submit": "s", "prompt": "E", "decode": 1},
                {"submit": "r", "prompt": "A", "decode": 1}])")) ==
      "/steps/0/prompt: expected a prompt whose request \"r\" was submitted by an earlier step, "
      "found "
      "\"E\"");
}

TEST_CASE("faults are checked") {
  refuse_all(
      {
          {R"({"do": "fail"})",
           "/faults/0: expected the key \"on\" (one of \"match\", \"lookup\", \"load\", "
           "\"commit\", "
           "\"offload\", \"cow\", \"forward\", \"evict\", \"alloc\", \"vote\", \"event\"), found "
           "none"},
          {R"({"on": "load", "do": "explode"})",
           "/faults/0/do: expected one of \"fail\", \"stale\", \"refuse\", \"evict\", \"flush\", "
           "\"reorder\", found \"explode\""},
          {R"({"on": "load", "do": {}})",
           "/faults/0/do: expected an object with exactly one key, found an object"},
          {R"({"on": "load", "do": {"short": 1, "delay_us": 1}})",
           "/faults/0/do: expected an object with exactly one key, found an object"},
          {R"({"on": "load", "do": {"short": -1}})",
           "/faults/0/do/short: expected an integer >= 0, found -1"},
          {R"({"on": "load", "do": "fail", "nth": 0})",
           "/faults/0/nth: expected an integer >= 1, found 0"},
          {R"({"on": "load", "do": "fail", "nth": "some"})",
           "/faults/0/nth: expected \"all\", found \"some\""},
          {R"({"on": "load", "do": "fail", "request": "s"})",
           "/faults/0/request: expected the name of a request, found \"s\""},
          {R"({"on": "load", "do": {"cancel": "s"}})",
           "/faults/0/do/cancel: expected the name of a request, found \"s\""},
          {R"({"on": "load", "do": "fail", "rank": 1})",
           "/faults/0/rank: expected a rank below 1, found 1"},
      },
      [](const std::string& fault) { return with_request("\"faults\": [" + fault + "]"); });
}

TEST_CASE("expectations are checked") {
  refuse_all(
      {
          {R"("verdict": "ok")",
           "/expect/verdict: expected one of \"pass\", \"fail\", found \"ok\""},
          {R"("requests": {"s": {}})",
           "/expect/requests/s: expected the name of a request, found \"s\""},
          {R"("requests": {"r": {"restored": 1}})",
           "/expect/requests/r/restored: expected a field of a request's result, found "
           "\"restored\""},
          {R"("requests": {"r": {"loaded_rows": {"kv": 1}}})",
           "/expect/requests/r/loaded_rows/kv: expected a field of a request's result, found "
           "\"loaded_rows.kv\""},
          {R"("requests": {"r": {"kl_max": [0]}})",
           "/expect/requests/r/kl_max: expected a number, a range {\"min\", \"max\"}, a string, "
           "true, false, "
           "null or an object, found an array"},
          {R"("counters": {"loads": {"min": "1"}})",
           "/expect/counters/loads/min: expected a number from -1e+300 to 1e+300, found \"1\""},
          {R"("violations": [1])",
           "/expect/violations/0: expected a string that is not empty, found 1"},
          {R"("events": ["mached"])",
           "/expect/events/0: expected the name of an event, found \"mached\""},
          {R"("events": [{"request": "r"}])",
           "/expect/events/0: expected the key \"event\" (the name of an event), found none"},
          {R"("events": [{"event": "matched", "request": "s"}])",
           "/expect/events/0/request: expected the name of a request, found \"s\""},
          {R"("events": [{"event": "matched", "node": 1.5}])",
           "/expect/events/0/node: expected an integer, a string, true, false or a list of "
           "integers, found 1.5"},
          {R"("events": [{"event": "evicted", "rows": [1, "2"]}])",
           "/expect/events/0/rows: expected an integer, a string, true, false or a list of "
           "integers, found an array"},
      },
      [](const std::string& members) { return with_request("\"expect\": {" + members + "}"); });
}

TEST_CASE("files that are no scenario are refused by name") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "lockstep-bad-scenario.json";
  const auto read_text = [&](const std::string& text) {
    std::ofstream(file) << text;
    return read_scenario_file(file.string()).error().message;
  };
  REQUIRE(read_text("") == file.string() + ": expected a JSON document, found an empty file");
  REQUIRE(read_text("{\"version\": 1, \"na").find(file.string() + ": parse error at line 1") == 0);
  std::filesystem::resize_file(file, (std::uintmax_t{64} << 20) + 1);
  REQUIRE(read_scenario_file(file.string()).error().message ==
          file.string() + ": expected at most 67108864 bytes, found more");
  std::filesystem::remove(file);
  REQUIRE(read_scenario_file(file.string()).error().message ==
          file.string() + ": cannot be opened, expected a readable file");
}

}  // namespace lockstep::sim
