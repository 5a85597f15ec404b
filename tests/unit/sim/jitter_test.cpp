#include "sim/jitter.h"

#include <set>

#include "catch.h"

namespace lockstep::sim {
namespace {

TEST_CASE("jitter lengthens a duration by less than its share, differently, and the same again") {
  Jitter jitter(substream(7, "schedule 0"), 0.2);
  Jitter again(substream(7, "schedule 0"), 0.2);
  const Nanoseconds nominal{10'000};
  std::set<Nanoseconds> seen;
  for (int i = 0; i < 100; ++i) {
    const Nanoseconds duration = jitter.jitter({}, nominal);
    REQUIRE(duration == again.jitter({}, nominal));
    REQUIRE(duration >= nominal);
    REQUIRE(duration < Nanoseconds{12'000});
    seen.insert(duration);
  }
  REQUIRE(seen.size() > 50);
}

TEST_CASE("no share, no jitter; nothing takes no time for ever") {
  Jitter none(substream(7, "schedule 0"), 0.0);
  REQUIRE(none.jitter({}, Nanoseconds{10'000}) == Nanoseconds{10'000});
  Jitter some(substream(7, "schedule 0"), 1.0);
  REQUIRE(some.jitter({}, Nanoseconds{0}) == Nanoseconds{0});
}

}  // namespace
}  // namespace lockstep::sim
