#include "pool/row_pool.h"

#include <algorithm>
#include <cstring>

#include "catch.h"
#include "device/stepped.h"
#include "event_recorder.h"
#include "fake_timers.h"

namespace lockstep {
namespace {

using testing::EventRecorder;
using testing::FakeTimers;
using Lines = std::vector<std::string>;

constexpr RequestId kRequest{4};

// A slot of 26 bytes: no multiple of the poison word, so that the last bytes matter too.
RowLayout slot_layout() {
  return RowLayout{Component::mamba,
                   {{LayerId{1}, Part::temporal, Bytes{0}, Bytes{16}},
                    {LayerId{1}, Part::conv, Bytes{16}, Bytes{10}}},
                   Bytes{26}};
}

struct Bench {
  FakeTimers timers;
  SteppedDevice device;
  EventRecorder events;
  RowPool pool;

  explicit Bench(Rows capacity = Rows{4}, SteppedHooks hooks = {})
      : device(timers, CostModel{}, hooks),
        pool(device, events, RankId{2}, slot_layout(), capacity) {}

  OwnedRows take(Rows count) { return pool.allocate(kRequest, count, Purpose::forward).value(); }
};

std::vector<Row> rows(std::initializer_list<std::uint32_t> values) {
  std::vector<Row> list;
  for (std::uint32_t value : values) list.push_back(Row{value});
  return list;
}

std::vector<Row> copy(std::span<const Row> span) {
  return {span.begin(), span.end()};
}

// Whether every whole word of the row is 1e30f and the rest is the beginning of that word.
bool poisoned(std::span<const std::byte> bytes) {
  const float poison = 1e30f;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof poison) {
    const std::size_t length = std::min(sizeof poison, bytes.size() - at);
    if (std::memcmp(bytes.data() + at, &poison, length) != 0) return false;
  }
  return true;
}

TEST_CASE("a new pool hands out 1, 2, 3, ... and never the trap row") {
  Bench bench;
  REQUIRE(bench.pool.free() == Rows{4});
  OwnedRows all = bench.take(Rows{4});
  REQUIRE(copy(all.rows()) == rows({1, 2, 3, 4}));
  REQUIRE(bench.pool.free() == Rows{0});
  REQUIRE(bench.events.take() == Lines{"2 r4 allocated mamba for forward: 1 2 3 4"});
}

TEST_CASE("what was freed last is handed out first") {
  Bench bench;
  OwnedRows first = bench.take(Rows{1});
  OwnedRows second = bench.take(Rows{1});
  first.release();
  second.release();
  REQUIRE(bench.pool.free_list().back() == Row{2});
  REQUIRE(bench.take(Rows{1}).row() == Row{2});
}

TEST_CASE("allocation takes all or nothing") {
  Bench bench;
  OwnedRows held = bench.take(Rows{3});
  bench.events.take();
  REQUIRE_FALSE(bench.pool.allocate(kRequest, Rows{2}, Purpose::load).has_value());
  REQUIRE(bench.pool.free() == Rows{1});
  REQUIRE(bench.events.take().empty());
  REQUIRE(bench.pool.allocate(kRequest, Rows{0}, Purpose::load)->empty());
  REQUIRE(bench.pool.allocate(kRequest, Rows{1}, Purpose::load)->row() == Row{4});
}

TEST_CASE("owned rows go back when their owner ends, once") {
  Bench bench;
  {
    OwnedRows rows = bench.take(Rows{2});
  }
  REQUIRE(bench.pool.free() == Rows{4});
  REQUIRE(bench.events.take() ==
          Lines{"2 r4 allocated mamba for forward: 1 2", "2 freed mamba: 1 2"});
  OwnedRows again = bench.take(Rows{1});
  again.release();
  again.release();
  REQUIRE(bench.pool.free() == Rows{4});
}

TEST_CASE("moving owned rows moves the duty to free them") {
  Bench bench;
  OwnedRows source = bench.take(Rows{2});
  OwnedRows target = std::move(source);
  REQUIRE(source.empty());  // NOLINT(bugprone-use-after-move): empty after a move is promised
  REQUIRE(target.size() == Rows{2});
  source.release();
  REQUIRE(bench.pool.free() == Rows{2});

  OwnedRows other = bench.take(Rows{1});
  other = std::move(target);  // gives back row 3, which it held
  REQUIRE(bench.pool.free() == Rows{2});
  REQUIRE(bench.pool.free_list().back() == Row{3});
  REQUIRE(copy(other.rows()) == rows({1, 2}));
}

TEST_CASE("owned rows are not copied") {
  STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<OwnedRows>);
  STATIC_REQUIRE_FALSE(std::is_copy_assignable_v<OwnedRows>);
  STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<RowPool>);
}

TEST_CASE("owned rows split, join and leave in order") {
  Bench bench;
  OwnedRows tail = bench.take(Rows{4});
  OwnedRows front = tail.take_front(Rows{1});
  REQUIRE(front.row() == Row{1});
  REQUIRE(copy(tail.rows()) == rows({2, 3, 4}));
  tail.append(std::move(front));
  REQUIRE(copy(tail.rows()) == rows({2, 3, 4, 1}));
  OwnedRows none;
  none.append(tail.take_front(Rows{2}));
  REQUIRE(copy(none.rows()) == rows({2, 3}));
  REQUIRE(none.disown() == rows({2, 3}));
  REQUIRE(none.empty());
  none.release();
  REQUIRE(bench.pool.free() == Rows{0});
  tail.release();
  REQUIRE(bench.pool.free() == Rows{2});
}

TEST_CASE("misuse of owned rows is a contract failure") {
  Bench bench;
  Bench stranger;
  OwnedRows two = bench.take(Rows{2});
  REQUIRE_THROWS_AS(two.row(), ContractFailure);
  REQUIRE_THROWS_AS(two.take_front(Rows{3}), ContractFailure);
  REQUIRE_THROWS_AS(two.append(stranger.take(Rows{1})), ContractFailure);
  REQUIRE_THROWS_AS(bench.pool.allocate(kRequest, Rows{-1}, Purpose::load), ContractFailure);
  REQUIRE_THROWS_AS(bench.pool.bytes(Row{5}), ContractFailure);
}

TEST_CASE("a double release stays visible in the free list") {
  Bench bench;
  const std::vector<Row> row = bench.take(Rows{1}).disown();
  bench.pool.release(row);
  bench.pool.release(row);
  REQUIRE(bench.pool.free() == Rows{5});
  REQUIRE(std::ranges::count(bench.pool.free_list(), Row{1}) == 2);
}

TEST_CASE("every row starts poisoned, the trap row too, and rows lie side by side") {
  Bench bench;
  for (std::uint32_t row = 0; row <= 4; ++row) {
    REQUIRE(poisoned(bench.pool.bytes(Row{row})));
    REQUIRE(bench.pool.bytes(Row{row}).data() == bench.pool.base() + row * 26);
    REQUIRE(bench.pool.bytes(Row{row}).size() == 26);
  }
}

TEST_CASE("freed rows are poisoned in order of the compute stream, the others are left alone") {
  Bench bench;
  OwnedRows freed = bench.take(Rows{1});
  OwnedRows kept = bench.take(Rows{1});
  std::ranges::fill(bench.pool.bytes(Row{1}), std::byte{0});
  std::ranges::fill(bench.pool.bytes(Row{2}), std::byte{0});
  bool clean_when_read = false;
  bench.device.enqueue(StreamKind::compute, Op{.name = "reader", .bytes = Bytes{1000}, .body = [&] {
                                                 clean_when_read =
                                                     bench.pool.bytes(Row{1})[25] == std::byte{0};
                                               }});
  freed.release();
  REQUIRE_FALSE(poisoned(bench.pool.bytes(Row{1})));
  bench.timers.run_all();
  REQUIRE(clean_when_read);
  REQUIRE(poisoned(bench.pool.bytes(Row{1})));
  REQUIRE(bench.pool.bytes(Row{2})[0] == std::byte{0});
  REQUIRE(bench.device.check_canaries().ok());
}

TEST_CASE("poisoning takes no time and declares a write of every part of every row") {
  struct Lister : DeviceListener {
    void op_begins(StreamKind stream, const Op& op) override {
      REQUIRE(stream == StreamKind::compute);
      REQUIRE(op.name == "pool.poison");
      op.accesses([this](const Access& access) {
        REQUIRE(access.component == Component::mamba);
        REQUIRE(access.layer == LayerId{1});
        REQUIRE(access.mode == AccessMode::write);
        lines.push_back(std::to_string(access.row.value()) + " " + std::string(name(access.part)));
      });
    }
    Lines lines;
  } listener;
  Bench bench(Rows{4}, {.listener = &listener});
  bench.take(Rows{2}).release();
  bench.timers.run_all();
  REQUIRE(bench.timers.now() == Nanoseconds{0});
  REQUIRE(listener.lines == Lines{"1 temporal", "1 conv", "2 temporal", "2 conv"});
}

TEST_CASE("a pool of no rows is a contract failure") {
  REQUIRE_THROWS_AS(Bench(Rows{0}), ContractFailure);
}

// ---------------------------------------------------------------- shrinking

TEST_CASE("a pool that shrinks withdraws free rows at once") {
  Bench bench(Rows{4});
  bench.pool.shrink(Rows{3});
  REQUIRE(bench.events.take() == Lines{"2 withdrew mamba: 1"});
  REQUIRE(bench.pool.in_service() == Rows{3});
  REQUIRE(bench.pool.free() == Rows{3});
  REQUIRE(copy(bench.pool.withdrawn()) == rows({1}));
  REQUIRE_FALSE(bench.pool.allocate(kRequest, Rows{4}, Purpose::forward).has_value());
  REQUIRE(copy(bench.take(Rows{3}).rows()) == rows({2, 3, 4}));
}

TEST_CASE("rows in use are withdrawn as they come free, until as many are left as asked for") {
  Bench bench(Rows{4});
  OwnedRows first = bench.take(Rows{2});
  OwnedRows rest = bench.take(Rows{2});
  bench.events.take();
  bench.pool.shrink(Rows{1});
  REQUIRE(bench.events.take().empty());
  REQUIRE(bench.pool.in_service() == Rows{4});
  first.release();
  REQUIRE(bench.events.take() == Lines{"2 freed mamba: 1 2", "2 withdrew mamba: 2 1"});
  rest.release();
  REQUIRE(bench.pool.in_service() == Rows{1});
  REQUIRE(bench.pool.free() == Rows{1});
}

TEST_CASE("a pool never grows again, and keeps a row") {
  Bench bench(Rows{4});
  bench.pool.shrink(Rows{2});
  bench.pool.shrink(Rows{9});
  REQUIRE(bench.pool.in_service() == Rows{2});
  REQUIRE_THROWS_AS(bench.pool.shrink(Rows{0}), ContractFailure);
}

}  // namespace
}  // namespace lockstep
