#include "sim/scenario_reader.h"

#include <filesystem>
#include <fstream>

#include "catch.h"
#include "core/json.h"

namespace lockstep::sim {
namespace {

constexpr const char* kSource = "x.json";

Scenario parsed(std::string_view text) {
  const Result<Scenario> scenario = parse_scenario(text, kSource);
  INFO((scenario ? std::string() : scenario.error().message));
  REQUIRE(scenario.ok());
  return *scenario;
}

// Every kind of prompt, step, fault and expectation of the format.
constexpr std::string_view kEverything = R"({
  "$schema": "../schema.json", "version": 1, "name": "everything", "about": "all forms", "seed": 7,
  "slow": true, "ranks": 2,
  "model": {"preset": "fingerprint", "window": 3, "state_chunk": 1, "vocab": 1000,
            "layers": ["swa", "full"],
            "kv_scale": true, "virtual_slots": true, "state_dtype": "int8",
            "extra_slot_state": ["ple"],
            "contiguous_rows": false, "swa_page": 32},
  "cache": {"page": 16, "track_interval": 32, "prefill_chunk": 40, "full_pages": 5, "swa_pages": 6,
            "mamba_slots": 7, "max_running": 8, "ahead": 1, "checkpoints": "every",
            "publish": "after_load", "overlap": "barrier", "reoffload": "never",
            "object_order": "descending"},
  "store": {"kind": "memory", "capacity_mib": 1, "latency_us": 2.5, "gigabytes_per_s": 3},
  "schedule": {"mode": "priority", "depth": 3, "jitter": 0.5},
  "prompts": {
    "A": {"random": 1024, "seed": 1},
    "B": {"from": "A", "take": 640, "then": {"random": 256, "seed": 2}},
    "C": {"tokens": [1, 2, 3]},
    "D": {"output_of": "r1", "then": [{"random": 1, "seed": 3}, {"random": 2}]}},
  "steps": [
    {"submit": "r1", "prompt": "A", "decode": 256}, {"run": "idle"}, {"flush": "device"},
    {"submit": "r2", "prompt": "D", "decode": 512, "extra_key": "adapter-7", "cache_salt": ""},
    {"hold": "r2", "at": "looked_up"}, {"run": {"steps": 3}}, {"release": "r2"},
    {"run": {"until": "r2:committed"}},
    {"evict": {"from": "device", "component": "mamba", "count": 1}},
    {"evict": {"from": "store", "component": "full", "rank": 1, "prompt": "A", "at": 64}},
    {"fork": "r1", "as": "r3", "at": 640, "then": {"random": 64, "seed": 4}, "decode": 8},
    {"cancel": "r2"}, {"retract": "r3"},
    {"restart": {"engine": {"cache": {"page": 64}}}},
    {"restart": {"engine": {"model": "fingerprint", "cache": {"ahead": 0}},
                 "store": {"keep": false}}},
    {"pick": 9, "of": "fork"}, {"pick": 10}, {"run": "drain"}],
  "faults": [
    {"on": "load", "component": "mamba", "rank": 0, "nth": 1, "do": "fail"},
    {"on": "load", "component": "full", "page": 3, "do": {"short": 64}},
    {"on": "lookup", "nth": "all", "request": "r2", "do": "stale"},
    {"on": "load", "layer": 2, "do": {"delay_us": 5000}},
    {"on": "load", "do": {"corrupt_bit": 17}}, {"on": "offload", "do": {"late_us": 1}},
    {"on": "alloc", "do": {"shrink": {"pool": "swa", "to": 2}}},
    {"on": "event", "nth": 9, "do": {"cancel": "r1"}}, {"on": "vote", "do": {"retract": "r1"}},
    {"on": "match", "do": {"restart": {"engine": {"cache": {"page": 48}}}}}],
  "defects": ["commit.skip_state"],
  "expect": {
    "verdict": "fail",
    "requests": {"r2": {"outcome": "completed", "restored_tokens": 1152, "kl_max": null,
                        "recomputed": false,
                        "loaded_rows": {"full": {"min": 1, "max": 9}, "swa": {"min": 2}}}},
    "violations": ["B6"], "violations_at_least": [],
    "counters": {"loads": 6, "faults_injected": {"fail": {"max": 3}}},
    "events": ["matched", {"event": "load_aborted", "request": "r2", "component": "mamba",
                           "cursor": 3}]}
})";

}  // namespace

TEST_CASE("a scenario's parts become values") {
  const Scenario scenario = parsed(kEverything);
  REQUIRE(scenario.name == "everything");
  REQUIRE(scenario.seed == 7);
  REQUIRE(scenario.slow);
  REQUIRE(scenario.ranks == 2);
  REQUIRE(scenario.model.window == Tokens{3});
  REQUIRE(scenario.model.layers == std::vector<std::string>{"swa", "full"});
  REQUIRE(scenario.model.source == "x.json: /model");
  REQUIRE(scenario.cache.page == Tokens{16});
  REQUIRE(scenario.cache.publish == PublishPolicy::after_load);
  REQUIRE(scenario.store.latency_us == 2.5);
  REQUIRE(scenario.schedule.mode == ScheduleMode::priority);
  REQUIRE(scenario.prompts.at("A").random == RandomTokens{Tokens{1024}, 1});
  REQUIRE(scenario.prompts.at("B").take == Tokens{640});
  REQUIRE(scenario.prompts.at("B").then == std::vector<RandomTokens>{{Tokens{256}, 2}});
  REQUIRE(scenario.prompts.at("C").tokens->at(2) == TokenId{3});
  REQUIRE(scenario.prompts.at("D").then ==
          std::vector<RandomTokens>{{Tokens{1}, 3}, {Tokens{2}, 0}});
  REQUIRE(scenario.steps.size() == 18);
  REQUIRE(std::get<PickStep>(scenario.steps[15]) == PickStep{9, MoveKind::fork});
  REQUIRE(std::get<PickStep>(scenario.steps[16]) == PickStep{10, std::nullopt});
  REQUIRE(std::get<RunStep>(scenario.steps[17]).drain);
  const auto& submit = std::get<SubmitStep>(scenario.steps[3]);
  REQUIRE(submit.extra_key == "adapter-7");
  REQUIRE(submit.cache_salt == "");
  REQUIRE(std::get<RunStep>(scenario.steps[1]).idle);
  REQUIRE(std::get<RunStep>(scenario.steps[5]).steps == 3);
  REQUIRE(std::get<RunStep>(scenario.steps[7]).until ==
          std::pair<std::string, Point>("r2", Point::committed));
  REQUIRE(std::get<EvictStep>(scenario.steps[9]) ==
          EvictStep{true, Component::full, RankId{1}, std::nullopt, "A", Tokens{64}});
  REQUIRE(scenario.faults[2].nth == std::nullopt);
  REQUIRE(scenario.faults[1].nth == 1);
  REQUIRE(scenario.faults[1].action == FaultAction{"short", 64, "", Component::full});
  REQUIRE(scenario.faults[6].action == FaultAction{"shrink", 2, "", Component::swa});
  REQUIRE(scenario.faults[7].action == FaultAction{"cancel", 0, "r1", Component::full});
}

TEST_CASE("expected fields are paths, numbers are ranges") {
  const ExpectSpec expect = *parsed(kEverything).expect;
  REQUIRE(expect.pass == false);
  const ExpectedFields& fields = expect.requests.at("r2");
  REQUIRE(fields.at("restored_tokens") == ExpectedValue(NumberRange{1152, 1152}));
  REQUIRE(fields.at("loaded_rows.full") == ExpectedValue(NumberRange{1, 9}));
  REQUIRE(fields.at("loaded_rows.swa") == ExpectedValue(NumberRange{2, std::nullopt}));
  REQUIRE(fields.at("kl_max") == ExpectedValue(nullptr));
  REQUIRE(fields.at("outcome") == ExpectedValue(std::string("completed")));
  REQUIRE(fields.at("recomputed") == ExpectedValue(false));
  REQUIRE(expect.counters.at("faults_injected.fail") ==
          ExpectedValue(NumberRange{std::nullopt, 3}));
  REQUIRE(expect.violations == std::vector<std::string>{"B6"});
  REQUIRE(expect.violations_at_least == std::vector<std::string>{});
  REQUIRE(expect.events[0] == ExpectedEvent{"matched", std::nullopt, {}});
  REQUIRE(expect.events[1].request == "r2");
  REQUIRE(std::get<std::int64_t>(expect.events[1].fields.at("cursor")) == 3);
  REQUIRE(std::get<std::string>(expect.events[1].fields.at("component")) == "mamba");
}

TEST_CASE("a restart changes the cache of its time, and only what it names") {
  const Scenario scenario = parsed(kEverything);
  CacheConfig expected = scenario.cache;
  expected.page = Tokens{64};
  REQUIRE(std::get<RestartStep>(scenario.steps[13]).cache == expected);
  expected.ahead = 0;
  const auto& second = std::get<RestartStep>(scenario.steps[14]);
  REQUIRE(second.cache == expected);
  REQUIRE(second.store);
  REQUIRE_FALSE(second.keep);
  CacheConfig at_fault = scenario.cache;
  at_fault.page = Tokens{48};
  REQUIRE(scenario.faults[9].restart->cache == at_fault);
}

TEST_CASE("a scenario that is written out and read back is the same") {
  const Scenario scenario = parsed(kEverything);
  REQUIRE(parsed(write_scenario(scenario)) == scenario);
  const Scenario small = parsed(R"({"version": 1, "name": "small", "steps": []})");
  REQUIRE(parsed(write_scenario(small)) == small);
}

TEST_CASE("what is not given has the default of version 1") {
  const Scenario small = parsed(R"({"version": 1, "name": "small", "steps": []})");
  REQUIRE(small.seed == 1);
  REQUIRE(small.ranks == 1);
  REQUIRE(small.cache == CacheConfig{});
  REQUIRE_FALSE(small.expect.has_value());
  const std::string written = write_scenario(small);
  for (const char* key :
       {"\"page\": 128", "\"track_interval\": 128", "\"prefill_chunk\": 2048", "\"full_pages\": 96",
        "\"mamba_slots\": 24", "\"max_running\": 1", "\"publish\": \"at_commit\"",
        "\"capacity_mib\": 256", "\"latency_us\": 50", "\"gigabytes_per_s\": 45",
        "\"mode\": \"fifo\"", "\"jitter\": 0.2"}) {
    INFO(key);
    REQUIRE(written.find(key) != std::string::npos);
  }
}

TEST_CASE("a model is a preset or a preset varied") {
  REQUIRE(parse_model_spec("\"fingerprint\"", "cli")->preset == "fingerprint");
  REQUIRE(parse_model_spec(R"({"preset": "fingerprint", "window": 9})", "m.json")->window ==
          Tokens{9});
  REQUIRE(parse_model_spec("3", "m.json").error().message ==
          "m.json: expected the name of a preset or an object, found 3");
  REQUIRE(parse_model_spec(R"({"windows": 9})", "m.json")
              .error()
              .message.find(
                  "m.json: /windows: unknown key, expected one of preset, checkpoint, window,") ==
          0);
}

TEST_CASE("a cache setting is key=value") {
  CacheConfig cache;
  REQUIRE(*set_cache_key("page=512", "--cache", cache) == "page");
  REQUIRE(*set_cache_key("checkpoints=every", "--cache", cache) == "checkpoints");
  CacheConfig expected;
  expected.page = Tokens{512};
  expected.checkpoints = CheckpointPolicy::every;
  REQUIRE(cache == expected);
  REQUIRE(set_cache_key("page", "--cache", cache).error().message ==
          "--cache: expected key=value, found \"page\"");
  REQUIRE(set_cache_key("page=0", "--cache", cache).error().message ==
          "--cache: /page: expected an integer from 1 to 16777216, found 0");
  REQUIRE(set_cache_key("pages=1", "--cache", cache)
              .error()
              .message.find("--cache: /pages: unknown key, expected one of page,") == 0);
}

// Writes scenarios/schema.json anew: test_sim "[write-schema]".
TEST_CASE("write the schema", "[.][write-schema]") {
  std::ofstream(LOCKSTEP_SOURCE_DIR "/scenarios/schema.json") << scenario_schema();
}

TEST_CASE("scenarios/schema.json is the schema of the field tables") {
  const Result<std::string> shipped =
      read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/schema.json", std::size_t{1} << 24);
  REQUIRE(shipped.ok());
  REQUIRE(*shipped == scenario_schema());
}

TEST_CASE("every shipped scenario is read, and is the same after writing it out") {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(LOCKSTEP_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "schema.json") continue;
    const Result<Scenario> scenario = read_scenario_file(entry.path().string());
    INFO((scenario ? entry.path().string() : scenario.error().message));
    REQUIRE(scenario.ok());
    const Result<Scenario> again = parse_scenario(write_scenario(*scenario), entry.path().string());
    REQUIRE(*again == *scenario);
    ++count;
  }
  REQUIRE(count > 0);
}

}  // namespace lockstep::sim
