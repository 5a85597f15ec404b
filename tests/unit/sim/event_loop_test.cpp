#include "sim/event_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "catch.h"

namespace lockstep::sim {
namespace {

TEST_CASE("events run in order of time, equal times in order of the calls") {
  EventLoop loop;
  std::vector<int> ran;
  const auto mark = [&ran](int id) { return [&ran, id] { ran.push_back(id); }; };
  loop.after(Nanoseconds{20}, mark(3));
  loop.after(Nanoseconds{10}, mark(1));
  loop.after(Nanoseconds{20}, mark(4));
  loop.after(Nanoseconds{10}, mark(2));
  std::vector<std::int64_t> times;
  while (!loop.empty()) {
    loop.run_next();
    times.push_back(loop.now().value());
  }
  REQUIRE(ran == std::vector{1, 2, 3, 4});
  REQUIRE(times == std::vector<std::int64_t>{10, 10, 20, 20});
  REQUIRE(loop.processed() == 4);
}

TEST_CASE("an action may add events, also at the same time, which run after those already there") {
  EventLoop loop;
  std::vector<int> ran;
  loop.after(Nanoseconds{5}, [&] {
    ran.push_back(1);
    loop.after(Nanoseconds{0}, [&] { ran.push_back(3); });
    loop.after(Nanoseconds{1}, [&] { ran.push_back(4); });
  });
  loop.after(Nanoseconds{5}, [&] { ran.push_back(2); });
  while (!loop.empty()) loop.run_next();
  REQUIRE(ran == std::vector{1, 2, 3, 4});
  REQUIRE(loop.now() == Nanoseconds{6});
}

TEST_CASE("the order of many equal and unequal times is that of a stable sort") {
  EventLoop loop;
  std::vector<std::pair<std::int64_t, int>> ran;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t time = i * 7919 % 13;
    loop.after(Nanoseconds{time}, [&ran, time, i] { ran.emplace_back(time, i); });
  }
  while (!loop.empty()) loop.run_next();
  REQUIRE(ran.size() == 1000);
  REQUIRE(std::is_sorted(ran.begin(), ran.end()));
}

TEST_CASE("misuse is a contract failure") {
  EventLoop loop;
  REQUIRE_THROWS_AS(loop.run_next(), ContractFailure);
  REQUIRE_THROWS_AS(loop.after(Nanoseconds{-1}, [] {}), ContractFailure);
}

}  // namespace
}  // namespace lockstep::sim
