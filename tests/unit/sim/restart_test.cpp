// An engine restart at any moment: whatever the old engine had under way goes with it.
#include "catch.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {
namespace {

// Prefill, decode, offload, then a restore of the first request's prompt.
constexpr std::string_view kTwoRequests = R"({
  "version": 1, "name": "restart", "cache": {"page": 16, "max_running": 2},
  "prompts": {"A": {"random": 33, "seed": 1}},
  "steps": [{"submit": "r1", "prompt": "A", "decode": 4}, {"run": {"steps": 1}},
            {"restart": {"engine": {}}}, {"run": "drain"}, {"flush": "device"},
            {"submit": "r2", "prompt": "A", "decode": 2}, {"run": {"steps": 1}},
            {"restart": {"engine": {}}}, {"run": "drain"}]
})";

Scenario restarted_after(std::int64_t first, std::int64_t second) {
  Scenario scenario = *parse_scenario(kTwoRequests, "x.json");
  std::get<RunStep>(scenario.steps[1]).steps = first;
  std::get<RunStep>(scenario.steps[6]).steps = second;
  return scenario;
}

void require_pass(const Scenario& scenario) {
  const Result<RunResult> result = run_scenario(scenario, {});
  REQUIRE(result.ok());
  INFO((result->pass() ? "" : result->violations.front().invariant));
  REQUIRE(result->pass());
  REQUIRE(result->requests.at("r1").outcome == "completed");
  REQUIRE(result->requests.at("r2").outcome == "completed");
}

}  // namespace

TEST_CASE("an engine restart may come after any step, with transfers under way") {
  for (std::int64_t first = 1; first <= 8; ++first) {
    for (std::int64_t second = 1; second <= 8; ++second) {
      INFO(first << " steps, then " << second);
      require_pass(restarted_after(first, second));
    }
  }
}

TEST_CASE("a fault that fires while the engine goes down disturbs nobody") {
  Scenario scenario = restarted_after(2, 3);
  FaultSpec flush;
  flush.on = FaultPhase::event;
  flush.action.kind = "flush";
  scenario.faults = {flush};
  for (std::int64_t nth = 1; nth <= 250; ++nth) {
    INFO("after event " << nth);
    scenario.faults.front().nth = nth;
    require_pass(scenario);
  }
}

}  // namespace lockstep::sim
