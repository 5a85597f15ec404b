// Operations touch what they declare, and nothing else: otherwise the race detector would look in
// the wrong places.
#include "sim/access_check.h"

#include <algorithm>
#include <cstring>

#include "catch.h"
#include "event_recorder.h"
#include "sim/event_loop.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {
namespace {

constexpr Access kFirst{Component::full, Row{1}, LayerId{0}, Part::kv, AccessMode::read};
constexpr Access kSecond{Component::full, Row{2}, LayerId{0}, Part::kv, AccessMode::write};

// A pool of two rows of 8 bytes, and operations that copy the first row to the second.
struct Bench {
  EventLoop loop;
  testing::EventRecorder sink;
  std::vector<UndeclaredWrite> undeclared;
  AccessCheck check{[this](const UndeclaredWrite& write) { undeclared.push_back(write); }};
  SteppedDevice device{loop, CostModel{}, {.listener = &check}};
  PoolGroup pools{device,
                  sink,
                  RankId{0},
                  {{{Component::full, {{LayerId{0}, Part::kv, Bytes{0}, Bytes{8}}}, Bytes{8}},
                    Tokens{1},
                    Rows{2}}}};

  Bench() {
    check.watch(pools);
    std::ranges::fill(row(1), std::byte{1});
    std::ranges::fill(row(2), std::byte{2});
  }
  std::span<std::byte> row(std::uint32_t row) {
    return pools.pool(Component::full).bytes(Row{row});
  }
  bool holds(std::uint32_t at, std::byte value) { return std::ranges::count(row(at), value) == 8; }
  void copy(std::vector<Access> declared, bool as_body) {
    Op op{.name = "copy", .link = Link::none};
    op.accesses = [declared](const AccessSink& tell) {
      for (const Access& access : declared) tell(access);
    };
    if (as_body) {
      op.body = [this] { std::ranges::copy(row(1), row(2).begin()); };
    } else {
      op.copies.add(row(2), row(1));
    }
    device.enqueue(StreamKind::load, std::move(op));
    while (!loop.empty()) loop.run_next();
  }
};

TEST_CASE("what is declared works as always, and leaves the rest as it was") {
  Bench bench;
  bench.copy({kFirst, kSecond}, GENERATE(true, false));
  REQUIRE(bench.undeclared.empty());
  REQUIRE(bench.holds(1, std::byte{1}));
  REQUIRE(bench.holds(2, std::byte{1}));
}

TEST_CASE("an undeclared write is reported and undone") {
  Bench bench;
  bench.copy({kFirst}, GENERATE(true, false));
  REQUIRE(bench.undeclared.size() == 1);
  REQUIRE(bench.undeclared.front().operation == "copy");
  REQUIRE(bench.undeclared.front().row == Row{2});
  REQUIRE(bench.holds(2, std::byte{2}));
}

TEST_CASE("a write that is declared as a read is reported") {
  Bench bench;
  Access read = kSecond;
  read.mode = AccessMode::read;
  bench.copy({kFirst, read}, GENERATE(true, false));
  REQUIRE(bench.undeclared.size() == 1);
}

TEST_CASE("an undeclared read computes with poison") {
  Bench bench;
  bench.copy({kSecond}, GENERATE(true, false));
  REQUIRE(bench.undeclared.empty());
  std::uint32_t word = 0;
  std::memcpy(&word, bench.row(2).data(), sizeof word);
  REQUIRE(word == kPoisonWord);
  REQUIRE(bench.holds(1, std::byte{1}));
}

// Restores, branches, evictions, window release, failed loads on one of two ranks, retraction; in
// words, and in numbers, where attention layers have a state too (tests/scenario/on_pico.py).
TEST_CASE("scenarios end alike when every operation loses what it does not declare", "[slow]") {
  const std::string preset = GENERATE("fingerprint", "inkling-pico");
  for (const char* name : {"branch-at-page-edge", "load-failure", "partial-adoption",
                           "retract-for-room", "state-already-there", "swa-window"}) {
    CAPTURE(preset, name);
    auto scenario = read_scenario_file(std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/upstream/" +
                                       name + ".json");
    REQUIRE(scenario.ok());
    scenario->model.preset = preset;
    const auto usual = run_scenario(*scenario, {});
    RunOptions options;
    options.watch = Watch::accesses;
    const auto checked = run_scenario(*scenario, options);
    REQUIRE(usual.ok());
    REQUIRE(checked.ok());
    REQUIRE(usual->pass());
    REQUIRE(checked->pass());
    REQUIRE(checked->digest == usual->digest);
  }
}

}  // namespace
}  // namespace lockstep::sim
