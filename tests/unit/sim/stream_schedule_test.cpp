#include "sim/stream_schedule.h"

#include <set>

#include "catch.h"

namespace lockstep::sim {
namespace {

using enum StreamKind;
using Turns = std::vector<StreamKind>;

constexpr std::array kAll{compute, load, offload};

std::unique_ptr<Schedule> schedule(ScheduleMode mode, std::uint64_t seed, std::int64_t depth = 1) {
  return make_schedule({.mode = mode, .depth = depth, .jitter = 0.2}, seed, RankId{0});
}

Turns choose(Schedule& schedule, int turns) {
  Turns chosen;
  for (int i = 0; i < turns; ++i) chosen.push_back(schedule.choose(kAll));
  return chosen;
}

std::size_t changes(const Turns& turns) {
  std::size_t count = 0;
  for (std::size_t i = 1; i < turns.size(); ++i) count += turns[i] == turns[i - 1] ? 0 : 1;
  return count;
}

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

TEST_CASE("only fifo lets streams run side by side, and the order draws do not move the jitter") {
  std::set<Nanoseconds> durations;
  for (ScheduleMode mode : {ScheduleMode::fifo, ScheduleMode::random, ScheduleMode::priority,
                            ScheduleMode::depth_first}) {
    const auto made = schedule(mode, 5, 3);
    REQUIRE(made->takes_turns() == (mode != ScheduleMode::fifo));
    if (made->takes_turns()) choose(*made, 10);
    durations.insert(made->jitter({}, Nanoseconds{100'000}));
  }
  REQUIRE(durations.size() == 1);
}

TEST_CASE("random turns reach every order of three streams, the same again for the same seed") {
  std::set<Turns> orders;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Turns turns = choose(*schedule(ScheduleMode::random, seed), 3);
    REQUIRE(turns == choose(*schedule(ScheduleMode::random, seed), 3));
    orders.insert(turns);
  }
  REQUIRE(orders.size() == 27);
}

TEST_CASE("with bug depth 1 priorities never change, and every stream comes first for some seed") {
  std::set<StreamKind> first;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Turns turns = choose(*schedule(ScheduleMode::priority, seed), 5000);
    REQUIRE(changes(turns) == 0);
    first.insert(turns.front());
  }
  REQUIRE(first.size() == 3);
}

TEST_CASE("with bug depth d the stream in front falls behind at most d - 1 times") {
  std::set<std::size_t> seen;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::size_t count = changes(choose(*schedule(ScheduleMode::priority, seed, 3), 5000));
    REQUIRE(count <= 2);
    seen.insert(count);
  }
  REQUIRE(seen.contains(2));
}

TEST_CASE("sets of delays are numbered without gaps: at most two delays") {
  using Delays = std::vector<std::uint64_t>;
  const std::vector<Delays> wanted{{}, {0}, {0, 0}, {1}, {0, 1}, {1, 1}, {2}, {0, 2}, {1, 2}};
  for (std::size_t number = 0; number < wanted.size(); ++number) {
    REQUIRE(delays_of(number, 2) == wanted[number]);
  }
  // With one delay at most, number n is a delay at turn n - 1.
  REQUIRE(delays_of(0, 1).empty());
  REQUIRE(delays_of(1000, 1) == Delays{999});
}

TEST_CASE("the first binomial(n + d, d) sets are those of at most d delays in n turns") {
  // binomial(4 + 3, 3) = 35.
  std::set<std::vector<std::uint64_t>> sets;
  for (std::uint64_t number = 0; number < 35; ++number) {
    const std::vector<std::uint64_t> delays = delays_of(number, 3);
    REQUIRE(delays.size() <= 3);
    for (std::uint64_t turn : delays) REQUIRE(turn < 4);
    sets.insert(delays);
  }
  REQUIRE(sets.size() == 35);
}

TEST_CASE("depth first: the stream in front runs, but for the delays that the seed numbers") {
  REQUIRE(choose(*schedule(ScheduleMode::depth_first, 0, 2), 3) ==
          Turns{compute, compute, compute});
  // Set 1 is {0}, set 5 is {1, 1}.
  REQUIRE(choose(*schedule(ScheduleMode::depth_first, 1, 2), 3) == Turns{load, compute, compute});
  REQUIRE(choose(*schedule(ScheduleMode::depth_first, 5, 2), 3) ==
          Turns{compute, offload, compute});
}

}  // namespace
}  // namespace lockstep::sim
