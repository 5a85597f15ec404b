#include "core/random.h"

#include "catch.h"

namespace lockstep {
namespace {

// The published test vector of splitmix64 for seed 1234567.
TEST_CASE("splitmix64 gives the published outputs") {
  SplitMix64 random(1234567);
  REQUIRE(random.next() == 6457827717110365317ull);
  REQUIRE(random.next() == 3203168211198807973ull);
  REQUIRE(random.next() == 9817491932198370423ull);
}

TEST_CASE("below() is the next output modulo the bound") {
  SplitMix64 random(1234567);
  REQUIRE(random.below(1000) == 317);
  REQUIRE(random.below(10) == 3);
}

TEST_CASE("a substream is fixed by seed and name, and by nothing else") {
  REQUIRE(substream(7, "faults").next() == substream(7, "faults").next());
  REQUIRE(substream(7, "faults").next() != substream(7, "workload").next());
  REQUIRE(substream(7, "faults").next() != substream(8, "faults").next());
}

}  // namespace
}  // namespace lockstep
