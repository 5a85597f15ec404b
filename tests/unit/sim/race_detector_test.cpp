#include "sim/race_detector.h"

#include <string>
#include <vector>

#include "catch.h"
#include "fake_timers.h"

namespace lockstep::sim {
namespace {

using testing::FakeTimers;
using enum StreamKind;
using Log = std::vector<std::string>;

constexpr LayerId kLayer{2};

// Slots of two layers with two parts each, and pages of one layer.
std::vector<PoolSpec> pools() {
  RowLayout slots{Component::mamba, {}, Bytes{32}};
  Bytes at;
  for (std::uint32_t layer : {2u, 3u}) {
    for (Part part : {Part::temporal, Part::conv}) {
      slots.parts.push_back({LayerId{layer}, part, at, Bytes{8}});
      at += Bytes{8};
    }
  }
  const RowLayout pages{Component::full, {{kLayer, Part::kv, Bytes{0}, Bytes{8}}}, Bytes{8}};
  return {{slots, Tokens{1}, Rows{4}}, {pages, Tokens{1}, Rows{4}}};
}

Access slot(Row row, AccessMode mode) {
  return {Component::mamba, row, kLayer, Part::temporal, mode};
}

// A device that runs operations which take `duration` and touch what they are told.
struct Bench {
  FakeTimers timers;
  Log races;
  RaceDetector detector{pools(), [this](const Race& race) {
                          races.push_back(std::string(race.earlier.operation) + " " +
                                          std::string(race.later.operation));
                          last = race;
                        }};
  SteppedDevice device{timers, CostModel{}, {.listener = &detector}};
  Race last;

  void op(StreamKind stream, std::string_view name, std::vector<Access> accesses) {
    Op op{.name = name, .link = Link::none};
    op.accesses = [accesses](const AccessSink& sink) {
      for (const Access& access : accesses) sink(access);
    };
    device.enqueue(stream, std::move(op));
  }
  void write(StreamKind stream, std::string_view name = "write") {
    op(stream, name, {slot(Row{1}, AccessMode::write)});
  }
  void read(StreamKind stream, std::string_view name = "read") {
    op(stream, name, {slot(Row{1}, AccessMode::read)});
  }
};

TEST_CASE("a read that does not wait for the write races, and the report says where") {
  Bench bench;
  bench.write(load, "load.layer");
  bench.read(compute, "cow.copy");
  bench.timers.run_all();
  REQUIRE(bench.races == Log{"load.layer cow.copy"});
  REQUIRE(bench.last.component == Component::mamba);
  REQUIRE(bench.last.row == Row{1});
  REQUIRE(bench.last.layer == kLayer);
  REQUIRE(bench.last.part == Part::temporal);
  REQUIRE(bench.last.earlier.stream == load);
  REQUIRE(bench.last.earlier.mode == AccessMode::write);
  REQUIRE(bench.last.later.stream == compute);
  REQUIRE(bench.last.later.mode == AccessMode::read);
}

TEST_CASE("it races in either order of execution") {
  Bench bench;
  bench.read(compute);
  bench.timers.run_all();
  bench.write(load);
  bench.timers.run_all();
  REQUIRE(bench.races == Log{"read write"});
}

TEST_CASE("two writes race") {
  Bench bench;
  bench.write(compute, "first");
  bench.write(load, "second");
  bench.timers.run_all();
  REQUIRE(bench.races == Log{"first second"});
}

TEST_CASE("reads do not race, nor do different rows, layers, parts or pools") {
  Bench bench;
  const Access base = slot(Row{1}, AccessMode::write);
  Access row = base;
  row.row = Row{2};
  Access layer = base;
  layer.layer = LayerId{3};
  Access part = base;
  part.part = Part::conv;
  const Access pool{Component::full, Row{1}, kLayer, Part::kv, AccessMode::write};
  bench.op(compute, "a", {base, slot(Row{3}, AccessMode::read)});
  bench.op(load, "b", {row, layer, pool, slot(Row{3}, AccessMode::read)});
  bench.op(offload, "c", {part, slot(Row{3}, AccessMode::read)});
  bench.timers.run_all();
  REQUIRE(bench.races.empty());
}

TEST_CASE("a stream's own operations are ordered") {
  Bench bench;
  bench.write(load, "first");
  bench.read(load);
  bench.write(load, "second");
  bench.timers.run_all();
  REQUIRE(bench.races.empty());
}

TEST_CASE("waiting for an event that is recorded behind the write orders; before it, not") {
  const bool behind = GENERATE(true, false);
  Bench bench;
  const DeviceEvent event;
  if (!behind) bench.device.record(load, event);
  bench.write(load);
  if (behind) bench.device.record(load, event);
  bench.device.wait(compute, event);
  bench.read(compute);
  bench.timers.run_all();
  REQUIRE(bench.races.empty() == behind);
}

TEST_CASE("an event orders nothing for a stream that does not wait for it") {
  Bench bench;
  const DeviceEvent event;
  bench.write(load);
  bench.device.record(load, event);
  bench.device.wait(offload, event);
  bench.read(compute);
  bench.timers.run_all();
  REQUIRE(bench.races == Log{"write read"});
}

TEST_CASE("the second record of an event orders nothing more") {
  Bench bench;
  const DeviceEvent event;
  bench.device.record(load, event);
  bench.write(load);
  bench.device.record(load, event);
  bench.timers.run_all();
  bench.device.wait(compute, event);
  bench.read(compute);
  bench.timers.run_all();
  REQUIRE(bench.races == Log{"write read"});
}

TEST_CASE("order passes on from stream to stream") {
  Bench bench;
  const DeviceEvent loaded;
  const DeviceEvent gathered;
  bench.write(load);
  bench.device.record(load, loaded);
  bench.device.wait(offload, loaded);
  bench.device.record(offload, gathered);
  bench.device.wait(compute, gathered);
  bench.read(compute);
  bench.timers.run_all();
  REQUIRE(bench.races.empty());
}

TEST_CASE("what the host enqueues is ordered behind what it has seen, and only then") {
  Bench bench;
  const DeviceEvent event;
  bench.write(load);
  bench.device.record(load, event);
  bench.timers.run_all();
  SECTION("it asked") {
    REQUIRE(bench.device.reached(event));
    bench.read(compute);
    bench.timers.run_all();
    REQUIRE(bench.races.empty());
  }
  SECTION("it was told") {
    bench.device.on_reached(event, [] {});
    bench.read(compute);
    bench.timers.run_all();
    REQUIRE(bench.races.empty());
  }
  SECTION("it was told before") {
    const DeviceEvent again;
    bench.write(load);
    bench.device.record(load, again);
    bench.device.on_reached(again, [&] { bench.read(compute); });
    bench.timers.run_all();
    REQUIRE(bench.races.empty());
  }
  SECTION("it asked after it had enqueued") {
    bench.read(compute);
    REQUIRE(bench.device.reached(event));
    bench.timers.run_all();
    REQUIRE(bench.races == Log{"write read"});
  }
  SECTION("it did not ask") {
    bench.read(compute);
    bench.timers.run_all();
    REQUIRE(bench.races == Log{"write read"});
  }
}

TEST_CASE("an event of another rank's device orders streams, but says nothing of their past") {
  Bench other;
  const DeviceEvent theirs;
  const DeviceEvent event;
  other.write(load);
  other.device.record(load, theirs);
  other.device.wait(compute, theirs);
  other.device.record(compute, event);  // the first operation of that device's load stream is over
  Bench bench;
  bench.write(load);
  bench.device.wait(compute, event);
  bench.read(compute);
  other.timers.run_all();
  bench.timers.run_all();
  REQUIRE(other.races.empty());
  REQUIRE(bench.races == Log{"write read"});
}

TEST_CASE("a signal passes on what the host knows, and no more") {
  const bool seen = GENERATE(true, false);
  Bench bench;
  const DeviceEvent written;
  const DeviceEvent signalled;
  bench.device.wait(compute, signalled);
  bench.read(compute);
  bench.write(load);
  bench.device.record(load, written);
  bench.timers.run_all();
  if (seen) REQUIRE(bench.device.reached(written));
  bench.device.signal(signalled);
  bench.timers.run_all();
  REQUIRE(bench.races.empty() == seen);
}

TEST_CASE("a later write is compared with every reader since the last one") {
  Bench bench;
  const DeviceEvent copied;
  bench.read(offload, "offload.copy");
  bench.read(compute, "forward.layer");
  bench.device.record(compute, copied);
  bench.device.wait(load, copied);
  bench.write(load, "load.layer");
  bench.timers.run_all();
  REQUIRE(bench.races == Log{"offload.copy load.layer"});
}

TEST_CASE("the trap row is nobody's") {
  Bench bench;
  bench.op(compute, "a", {slot(kTrapRow, AccessMode::write)});
  bench.op(load, "b", {slot(kTrapRow, AccessMode::write)});
  bench.timers.run_all();
  REQUIRE(bench.races.empty());
}

TEST_CASE("a pair of operations is reported once per component") {
  Bench bench;
  const Access page{Component::full, Row{1}, kLayer, Part::kv, AccessMode::write};
  bench.op(compute, "a", {slot(Row{1}, AccessMode::write), slot(Row{2}, AccessMode::write), page});
  bench.op(load, "b", {slot(Row{1}, AccessMode::write), slot(Row{2}, AccessMode::write), page});
  bench.timers.run_all();
  REQUIRE(bench.races == Log{"a b", "a b"});
  REQUIRE(bench.last.component == Component::full);
}

}  // namespace
}  // namespace lockstep::sim
