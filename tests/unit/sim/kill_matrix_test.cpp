#include "sim/kill_matrix.h"

#include <algorithm>

#include "catch.h"

namespace lockstep::sim {
namespace {

KillOptions few_seeds(const std::string& defect) {
  KillOptions options;
  options.only = {defect};
  options.seeds = 60;
  options.detections = 3;
  options.clean_seeds = 20;
  options.kl_seeds = 3;
  return options;
}

TEST_CASE("each invariant belongs to one detector") {
  REQUIRE(detector_of("D1") == "bits");
  REQUIRE(detector_of("D3") == "KL");
  REQUIRE(detector_of("B11") == "boundary");
  REQUIRE(detector_of("C3") == "conservation");
  REQUIRE(detector_of("CHECK:result.value") == "contracts");
  REQUIRE(detector_of("CANARY") == "contracts");
  REQUIRE(detector_of("H1") == "race");
  REQUIRE(detector_of("X9") == "none");
}

TEST_CASE("a defect that two detectors see is seen without either") {
  DefectOutcome outcome;
  outcome.seen = {{"B1", 3}, {"B6", 1}};
  REQUIRE_FALSE(outcome.seen_without("boundary"));
  REQUIRE(outcome.seen_without("bits"));
  outcome.seen["H1"] = 1;
  REQUIRE(outcome.seen_without("boundary"));
  REQUIRE(outcome.seen_without("race"));
}

TEST_CASE("a planted defect is reported by its invariant, good seeds report nothing") {
  const KillMatrix matrix = measure_kills(few_seeds("commit.skip_state"));
  REQUIRE(matrix.outcomes.size() == 1);
  const DefectOutcome& outcome = matrix.outcomes.front();
  REQUIRE(outcome.required_fired());
  REQUIRE(outcome.seen.contains("B6"));
  REQUIRE(outcome.detections >= 3);
  REQUIRE(*outcome.seeds_needed <= *outcome.required_after);
  REQUIRE(*outcome.required_after <= outcome.seeds_run);
  REQUIRE(matrix.worst_seeds() == *outcome.required_after);
  REQUIRE(matrix.false_alarms.empty());
  REQUIRE(matrix.good());
}

TEST_CASE("a run that does not end is the watchdog's finding, with a numeric model too") {
  KillOptions options = few_seeds("commit.skip_state");
  options.seeds = options.clean_seeds = options.kl_seeds = 2;
  options.most_events = 1;
  const KillMatrix matrix = measure_kills(options);
  REQUIRE(matrix.outcomes.front().seen.at("L1") == 4);
  REQUIRE(matrix.outcomes.front().by == "L1");
  REQUIRE(matrix.false_alarms.size() == 2);
  REQUIRE(matrix.false_alarms.front().invariant == "L1");
}

TEST_CASE("what is missed is said") {
  KillMatrix matrix;
  matrix.outcomes.resize(3);
  matrix.outcomes[0].required_after = 4;
  matrix.outcomes[2].required_after = 10;
  REQUIRE_FALSE(matrix.good());
  REQUIRE(matrix.median_seeds() == 10);
  REQUIRE(matrix.worst_seeds() == 10);
  matrix.outcomes[1].required_after = 2;
  REQUIRE(matrix.good());
  REQUIRE(matrix.median_seeds() == 4);
  matrix.false_alarms.push_back({7, "B6"});
  REQUIRE_FALSE(matrix.good());
}

}  // namespace
}  // namespace lockstep::sim
