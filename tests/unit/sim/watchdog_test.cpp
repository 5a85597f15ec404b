// A run that would not end becomes a finding.
#include "catch.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {
namespace {

constexpr std::string_view kOneRequest = R"({
  "version": 1, "name": "watched", "cache": {"page": 16},
  "prompts": {"A": {"random": 33, "seed": 1}},
  "steps": [{"submit": "r1", "prompt": "A", "decode": 8}, {"run": "idle"}]
})";

RunResult run_with_bound(std::uint64_t most_events) {
  RunOptions options;
  options.most_events = most_events;
  Result<RunResult> result = run_scenario(*parse_scenario(kOneRequest, "x.json"), options);
  REQUIRE(result.ok());
  return std::move(result).value();
}

}  // namespace

TEST_CASE("a run with more events than allowed ends as L1, and names who has not ended") {
  const RunResult whole = run_with_bound(0);
  REQUIRE(whole.pass());
  const RunResult cut = run_with_bound(whole.events / 2);
  REQUIRE(cut.violations.front().invariant == "L1");
  REQUIRE(cut.request_names.at(cut.violations.front().request) == "r1");
  REQUIRE(cut.events < whole.events);
}

TEST_CASE("a run within its bound is left alone") {
  const RunResult whole = run_with_bound(0);
  const RunResult bounded = run_with_bound(10 * whole.events);
  REQUIRE(bounded.pass());
  REQUIRE(bounded.digest == whole.digest);
}

}  // namespace lockstep::sim
