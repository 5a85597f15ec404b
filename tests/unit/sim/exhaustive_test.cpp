#include "sim/exhaustive.h"

#include "catch.h"

namespace lockstep::sim {

TEST_CASE("all short sequences pass, whatever the number of threads") {
  ExhaustiveOptions options;
  options.steps = 3;
  options.steps_with_fault = 2;
  const ExhaustiveSummary one = run_exhaustively(options);
  options.jobs = 3;
  const ExhaustiveSummary three = run_exhaustively(options);
  REQUIRE(one.findings.empty());
  // One step: the first request. Two: it and each of the twelve others. Three: some of the 12 * 12
  // (after a second request 10) lead to a state that is there.
  REQUIRE(one.sequences > 1 + 12);
  REQUIRE(one.sequences + one.merged == 1 + 12 + (10 * 12) + (2 * 10));
  REQUIRE(one.with_fault > 0);
  REQUIRE(one.sequences == three.sequences);
  REQUIRE(one.merged == three.merged);
  REQUIRE(one.with_fault == three.with_fault);
  REQUIRE(one.events == three.events);
}

TEST_CASE("a planted defect does not survive all short sequences") {
  ExhaustiveOptions options;
  options.steps = 4;
  options.steps_with_fault = 0;
  options.defects = {"commit.skip_state"};
  options.most_findings = 1;
  REQUIRE_FALSE(run_exhaustively(options).findings.empty());
}

}  // namespace lockstep::sim
