#include "device/stepped.h"

#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "fake_timers.h"

namespace lockstep {
namespace {

using testing::FakeTimers;

// One byte per nanosecond and no latency on the host link, so that an operation of n bytes takes n
// ns.
CostModel byte_per_nanosecond() {
  return CostModel{.device_memory = {Nanoseconds{100}, 2.0}, .host_link = {Nanoseconds{0}, 1.0}};
}

Op instant(std::function<void()> body) {
  return Op{.name = "instant", .link = Link::none, .body = std::move(body)};
}

// A device, and a log of "name@time" lines that the bodies of its operations write.
struct Bench {
  FakeTimers timers;
  SteppedDevice device;
  std::vector<std::string> log;

  explicit Bench(SteppedHooks hooks = {}) : device(timers, byte_per_nanosecond(), hooks) {}

  void note(const std::string& what) {
    log.push_back(what + "@" + std::to_string(timers.now().value()));
  }
  void op(StreamKind stream, std::string name, std::int64_t duration) {
    const Link link = duration == 0 ? Link::none : Link::host_link;
    device.enqueue(
        stream, Op{.name = "timed", .link = link, .bytes = Bytes{duration}, .body = [this, name] {
                     note(name);
                   }});
  }
};

using Log = std::vector<std::string>;

TEST_CASE("operations of one stream run in order, and their durations add up") {
  Bench bench;
  bench.op(StreamKind::compute, "a", 10);
  bench.op(StreamKind::compute, "b", 0);
  bench.op(StreamKind::compute, "c", 5);
  REQUIRE(bench.log.empty());
  REQUIRE_FALSE(bench.device.idle());
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"a@10", "b@10", "c@15"});
  REQUIRE(bench.device.idle());
}

TEST_CASE("nothing runs inside enqueue, not even what costs nothing") {
  Bench bench;
  bench.op(StreamKind::compute, "a", 0);
  REQUIRE(bench.log.empty());
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"a@0"});
}

TEST_CASE("an operation starts when it is enqueued into an idle stream") {
  Bench bench;
  bench.op(StreamKind::compute, "a", 10);
  bench.timers.run_all();
  bench.timers.run_until(Nanoseconds{100});
  bench.op(StreamKind::compute, "b", 10);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"a@10", "b@110"});
}

TEST_CASE("streams run side by side unless an event orders them") {
  Bench bench;
  bench.op(StreamKind::load, "slow", 30);
  bench.op(StreamKind::compute, "fast", 10);
  bench.op(StreamKind::compute, "faster", 5);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"fast@10", "faster@15", "slow@30"});
}

TEST_CASE("a wait holds its stream until the event that another stream records is reached") {
  Bench bench;
  const DeviceEvent loaded;
  bench.op(StreamKind::load, "load", 30);
  bench.device.record(StreamKind::load, loaded);
  bench.op(StreamKind::load, "next load", 30);
  bench.op(StreamKind::compute, "before", 10);
  bench.device.wait(StreamKind::compute, loaded);
  bench.op(StreamKind::compute, "after", 10);
  bench.timers.run_until(Nanoseconds{29});
  REQUIRE_FALSE(loaded.reached());
  REQUIRE(bench.log == Log{"before@10"});
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"before@10", "load@30", "after@40", "next load@60"});
}

TEST_CASE("a wait that comes before the record waits for it all the same") {
  Bench bench;
  const DeviceEvent event;
  bench.device.wait(StreamKind::compute, event);
  bench.op(StreamKind::compute, "after", 1);
  bench.timers.run_all();
  REQUIRE(bench.log.empty());
  REQUIRE_FALSE(bench.device.idle());
  bench.op(StreamKind::load, "load", 7);
  bench.device.record(StreamKind::load, event);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"load@7", "after@8"});
}

TEST_CASE("waiting for an event that has been reached holds nothing up") {
  Bench bench;
  const DeviceEvent event;
  bench.device.record(StreamKind::load, event);
  bench.timers.run_all();
  REQUIRE(event.reached());
  bench.device.wait(StreamKind::compute, event);
  bench.op(StreamKind::compute, "a", 3);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"a@3"});
}

TEST_CASE("the host reaches an event itself, and every stream that waits goes on") {
  Bench bench;
  const DeviceEvent arrived;
  for (StreamKind stream : {StreamKind::compute, StreamKind::offload}) {
    bench.device.wait(stream, arrived);
  }
  bench.op(StreamKind::compute, "compute", 5);
  bench.op(StreamKind::offload, "offload", 6);
  bench.timers.run_until(Nanoseconds{50});
  REQUIRE(bench.log.empty());
  bench.device.signal(arrived);
  REQUIRE(arrived.reached());
  REQUIRE(bench.log.empty());
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"compute@55", "offload@56"});
}

TEST_CASE("host actions of an event run once, in order, at once where it has been reached") {
  Bench bench;
  const DeviceEvent event;
  bench.device.on_reached(event, [&] { bench.note("first"); });
  bench.device.on_reached(event, [&] { bench.note("second"); });
  bench.op(StreamKind::load, "load", 4);
  bench.device.record(StreamKind::load, event);
  bench.timers.run_all();
  bench.device.signal(event);
  bench.device.record(StreamKind::compute, event);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"load@4", "first@4", "second@4"});
  bench.device.on_reached(event, [&] { bench.note("late"); });
  REQUIRE(bench.log.back() == "late@4");
}

TEST_CASE("what a body enqueues runs after it and after what was already queued") {
  Bench bench;
  bench.device.enqueue(StreamKind::compute, instant([&bench] {
                         bench.note("outer");
                         bench.op(StreamKind::compute, "inner", 0);
                       }));
  bench.op(StreamKind::compute, "queued", 0);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"outer@0", "queued@0", "inner@0"});
}

TEST_CASE("the cost is latency plus bytes over bandwidth, by link, rounded up") {
  const CostModel cost = byte_per_nanosecond();
  REQUIRE(cost.of(Link::none, Bytes{1000}) == Nanoseconds{0});
  REQUIRE(cost.of(Link::host_link, Bytes{1000}) == Nanoseconds{1000});
  REQUIRE(cost.of(Link::device_memory, Bytes{1000}) == Nanoseconds{600});
  REQUIRE(cost.of(Link::device_memory, Bytes{1}) == Nanoseconds{101});
}

TEST_CASE("a schedule may change a duration, not the order within a stream") {
  struct FirstIsSlow : Schedule {
    Nanoseconds jitter(const Op&, Nanoseconds nominal) override {
      return asked++ == 0 ? nominal * 10 : nominal;
    }
    int asked = 0;
  } schedule;
  Bench bench({.schedule = &schedule});
  bench.op(StreamKind::compute, "a", 10);
  bench.op(StreamKind::compute, "b", 10);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"a@100", "b@110"});
  REQUIRE(schedule.asked == 2);
}

TEST_CASE("a listener sees each operation before its body, and its accesses on demand") {
  struct Lister : AccessListener {
    void on_op(StreamKind stream, const Op& op) override {
      log.push_back(std::string(op.name) + " on " + std::to_string(static_cast<int>(stream)));
      if (op.accesses) op.accesses([this](const Access& access) { rows.push_back(access.row); });
    }
    Log log;
    std::vector<Row> rows;
  } listener;
  Bench bench({.listener = &listener});
  Op op = instant([&] { REQUIRE(listener.log.size() == 1); });
  op.accesses = [](const AccessSink& sink) { sink(Access{.row = Row{7}}); };
  bench.device.enqueue(StreamKind::load, std::move(op));
  bench.timers.run_all();
  REQUIRE(listener.log == Log{"instant on 1"});
  REQUIRE(listener.rows == std::vector{Row{7}});
}

TEST_CASE("accesses are not enumerated without a listener") {
  Bench bench;
  int enumerated = 0;
  Op op = instant({});
  op.accesses = [&enumerated](const AccessSink&) { ++enumerated; };
  bench.device.enqueue(StreamKind::load, std::move(op));
  bench.timers.run_all();
  REQUIRE(enumerated == 0);
}

// Two streams hand over to each other 100,000 times at one instant; nested calls would exhaust the
// stack.
TEST_CASE("long chains at one instant do not nest") {
  Bench bench;
  int ran = 0;
  const auto count = [&bench, &ran](StreamKind stream) {
    bench.device.enqueue(stream, instant([&ran] { ++ran; }));
  };
  for (int i = 0; i < 100'000; ++i) {
    const DeviceEvent to_load;
    const DeviceEvent to_compute;
    count(StreamKind::compute);
    bench.device.record(StreamKind::compute, to_load);
    bench.device.wait(StreamKind::load, to_load);
    count(StreamKind::load);
    bench.device.record(StreamKind::load, to_compute);
    bench.device.wait(StreamKind::compute, to_compute);
  }
  bench.timers.run_all();
  REQUIRE(ran == 200'000);
  REQUIRE(bench.timers.now() == Nanoseconds{0});
}

TEST_CASE("host actions that reach further events do not nest") {
  Bench bench;
  std::vector<DeviceEvent> chain(100'000);
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    bench.device.on_reached(chain[i], [&, i] { bench.device.signal(chain[i + 1]); });
  }
  bench.device.signal(chain.front());
  REQUIRE(chain.back().reached());
}

TEST_CASE("a device may go before the clock has run what it started") {
  FakeTimers timers;
  bool ran = false;
  const DeviceEvent event;
  {
    SteppedDevice device(timers, byte_per_nanosecond());
    const auto body = [&ran] { ran = true; };
    device.enqueue(StreamKind::compute, Op{"a", Link::host_link, Bytes{10}, body});
    device.wait(StreamKind::load, event);
    timers.run_until(Nanoseconds{5});
    device.enqueue(StreamKind::offload, instant(body));
  }
  timers.run_all();
  SteppedDevice other(timers, byte_per_nanosecond());
  other.signal(event);
  REQUIRE_FALSE(ran);
}

TEST_CASE("buffers are zero-filled, aligned and apart") {
  Bench bench;
  const auto first = bench.device.allocate("first", Bytes{100});
  const auto second = bench.device.allocate("second", Bytes{1});
  REQUIRE(first.size() == 100);
  REQUIRE(second.size() == 1);
  for (std::byte byte : first) REQUIRE(byte == std::byte{0});
  REQUIRE(reinterpret_cast<std::uintptr_t>(first.data()) % 64 == 0);
  REQUIRE(reinterpret_cast<std::uintptr_t>(second.data()) % 64 == 0);
  std::ranges::fill(first, std::byte{0xff});
  REQUIRE(second[0] == std::byte{0});
  REQUIRE(bench.device.check_canaries().ok());
}

TEST_CASE("a write next to a buffer is reported with the buffer's name and the side") {
  Bench bench;
  bench.device.allocate("tidy", Bytes{64});
  const auto buffer = bench.device.allocate("full pool", Bytes{64});
  SECTION("before") {
    buffer.data()[-1] = std::byte{1};
  }
  SECTION("beyond") {
    buffer.data()[64] = std::byte{1};
  }
  const Result<void> checked = bench.device.check_canaries();
  REQUIRE_FALSE(checked.ok());
  REQUIRE(checked.error().message.starts_with("device buffer full pool: written "));
}

}  // namespace
}  // namespace lockstep
