#include "sim/generate.h"

#include <set>

#include "catch.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {
namespace {

constexpr std::uint64_t kSeeds = 2000;

// `scenario` as a file holds it. The reader notes where it found a model.
Scenario read_back(const Scenario& scenario) {
  Result<Scenario> read = parse_scenario(write_scenario(scenario), "x.json");
  INFO((read ? std::string() : read.error().message));
  REQUIRE(read.ok());
  read->model.source = scenario.model.source;
  for (Step& step : read->steps) {
    auto* restart = std::get_if<RestartStep>(&step);
    if (restart != nullptr && restart->model) restart->model->source = scenario.model.source;
  }
  return std::move(read).value();
}

}  // namespace

TEST_CASE("every seed gives a scenario that the reader takes, and that a file does not change") {
  for (Profile profile : {Profile::smoke, Profile::ranks, Profile::pressure}) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Scenario scenario = generate({profile, "fingerprint"}, seed);
      INFO("seed " << seed);
      REQUIRE(read_back(scenario) == scenario);
    }
  }
}

TEST_CASE("a seed gives the same scenario each time, another seed another one") {
  const GeneratorOptions options;
  REQUIRE(generate(options, 7) == generate(options, 7));
  REQUIRE_FALSE(generate(options, 7) == generate(options, 8));
}

TEST_CASE("a caller's random streams take the place of the seed's") {
  const GeneratorOptions options;
  Scenario scenario = generate(options, 1, RandomSources::of(2));
  scenario.seed = 2;
  scenario.name = "seed-2";
  REQUIRE(scenario == generate(options, 2));
}

TEST_CASE("every generated scenario has a feature, and every feature is drawn") {
  FeatureSet drawn;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const FeatureSet features = features_of(generate({}, seed));
    REQUIRE(features.any());
    drawn |= features;
  }
  for (std::size_t i = 0; i < kFeatureCount; ++i) {
    INFO(name(static_cast<Feature>(i)));
    REQUIRE(drawn.test(i));
  }
}

TEST_CASE("what picks chose is written down, and runs the same without picks") {
  std::size_t picked = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Scenario scenario = generate({}, seed);
    std::vector<Step> taken;
    RunOptions options;
    options.taken = &taken;
    const Result<RunResult> first = run_scenario(scenario, options);
    REQUIRE(first.ok());
    for (const Step& step : scenario.steps) picked += std::holds_alternative<PickStep>(step);
    for (const Step& step : taken) REQUIRE_FALSE(std::holds_alternative<PickStep>(step));
    scenario.steps = taken;
    const Result<RunResult> second = run_scenario(read_back(scenario), {});
    INFO("seed " << seed);
    REQUIRE(second.ok());
    REQUIRE(second->digest == first->digest);
  }
  REQUIRE(picked > 50);
}

}  // namespace lockstep::sim
