// Each invariant is reported when its rule is broken, and a run that breaks nothing reports
// nothing.
#include "catch.h"
#include "story.h"

namespace lockstep::oracle::test {

TEST_CASE("a healthy run is passed, and what was compared is counted") {
  Story story;
  story.play();
  INFO(story.report());
  REQUIRE(story.found().empty());
  const Tally& tally = story.judge().verdict().tally;
  REQUIRE(tally.commits_verified == 1);
  REQUIRE(tally.tokens_verified == 9 + 8 + 1);  // computed; restored; computed after the restore
  REQUIRE(tally.logprobs_compared == 9 + 1);
  REQUIRE(tally.rows_compared > 0);
}

}  // namespace lockstep::oracle::test
