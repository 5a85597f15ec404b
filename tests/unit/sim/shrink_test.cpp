#include "sim/shrink.h"

#include <set>

#include "catch.h"
#include "sim/generate.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {
namespace {

constexpr std::size_t kMostSteps = 8;
constexpr std::uint64_t kMostExecutions = 2000;

// The first `count` seeds that the planted defect makes fail.
std::vector<Scenario> failing(std::size_t count) {
  std::vector<Scenario> scenarios;
  RunOptions options;
  options.stop_at_first = true;
  for (std::uint64_t seed = 1; scenarios.size() < count; ++seed) {
    Scenario scenario = generate({}, seed);
    scenario.defects = {"commit.skip_state"};
    const Result<RunResult> result = run_scenario(scenario, options);
    REQUIRE(result.ok());
    if (!result->pass()) scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

std::string first_invariant(const Scenario& scenario) {
  const Result<RunResult> result = run_scenario(scenario, {});
  REQUIRE(result.ok());
  return result->pass() ? "" : result->violations.front().invariant;
}

}  // namespace

TEST_CASE("a planted defect is shrunken to a handful of steps that fail in the same way") {
  for (const Scenario& scenario : failing(20)) {
    INFO(scenario.name);
    const Result<Shrunk> shrunk = shrink(scenario, {});
    REQUIRE(shrunk.ok());
    REQUIRE(shrunk->scenario.steps.size() + shrunk->scenario.faults.size() <= kMostSteps);
    REQUIRE(shrunk->executions <= kMostExecutions);
    REQUIRE(shrunk->invariant == first_invariant(scenario));
    REQUIRE(first_invariant(shrunk->scenario) == shrunk->invariant);
    REQUIRE(shrunk->scenario.ranks == 1);
  }
}

TEST_CASE("the shrunken scenario says what it violates, as a file too") {
  const Result<Shrunk> shrunk = shrink(failing(1).front(), {});
  const Result<Scenario> read = parse_scenario(write_scenario(shrunk->scenario), "x.json");
  REQUIRE(read.ok());
  const Result<RunResult> result = run_scenario(*read, {});
  REQUIRE(result.ok());
  REQUIRE_FALSE(result->pass());
  REQUIRE(result->unexpected == std::vector<std::string>{});
}

TEST_CASE("requests come before what happens to them, and time passes last") {
  for (const Scenario& scenario : failing(5)) {
    const Result<Shrunk> shrunk = shrink(scenario, {});
    std::size_t runs = 0;
    for (const Step& step : shrunk->scenario.steps) runs += std::holds_alternative<RunStep>(step);
    INFO(scenario.name);
    // The request that leaves something behind has to end before the one that restores it comes.
    REQUIRE(runs <= 2);
  }
}

TEST_CASE("shrinking is deterministic") {
  const Scenario scenario = failing(3).back();
  const Result<Shrunk> one = shrink(scenario, {});
  const Result<Shrunk> two = shrink(scenario, {});
  REQUIRE(one->scenario == two->scenario);
  REQUIRE(one->executions == two->executions);
}

TEST_CASE("shrinking keeps to its budget, and refuses what passes") {
  ShrinkOptions options;
  options.executions = 10;
  const Result<Shrunk> shrunk = shrink(failing(1).front(), options);
  REQUIRE(shrunk->executions <= 10);
  REQUIRE(first_invariant(shrunk->scenario) == shrunk->invariant);
  Scenario good = generate({}, 1);
  REQUIRE(shrink(good, {}).error().message ==
          "expected a scenario that violates something, this one passes");
}

}  // namespace lockstep::sim
