#include "device/stepped.h"

#include <algorithm>
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

// Writes down everything that a device tells.
struct Lister : DeviceListener {
  void enqueued(StreamKind stream) override { note("enqueued", stream); }
  void op_begins(StreamKind stream, const Op& op) override {
    note("begins " + std::string(op.name), stream);
    if (op.accesses) op.accesses([this](const Access& access) { rows.push_back(access.row); });
  }
  void bytes_begin(const Op&) override { log.emplace_back("bytes"); }
  void bytes_end(const Op&) override { log.emplace_back("moved"); }
  void recorded(StreamKind stream, DeviceEvent::State& event) override {
    note(event.reached ? "recorded again" : "recorded", stream);
  }
  void waited(StreamKind stream, const DeviceEvent::State&) override { note("waited", stream); }
  void signalled(DeviceEvent::State&) override { log.emplace_back("signalled"); }
  void seen_by_host(const DeviceEvent::State&) override { log.emplace_back("seen"); }
  void note(const std::string& what, StreamKind stream) {
    log.push_back(what + " on " + std::to_string(static_cast<int>(stream)));
  }
  Log log;
  std::vector<Row> rows;
};

TEST_CASE("a listener sees each operation before its body, and its accesses on demand") {
  Lister listener;
  Bench bench({.listener = &listener});
  Op op = instant([&] { listener.log.emplace_back("body"); });
  op.report = [&] { listener.log.emplace_back("report"); };
  op.accesses = [](const AccessSink& sink) { sink(Access{.row = Row{7}}); };
  bench.device.enqueue(StreamKind::load, std::move(op));
  bench.timers.run_all();
  REQUIRE(listener.log ==
          Log{"enqueued on 1", "begins instant on 1", "bytes", "body", "moved", "report"});
  REQUIRE(listener.rows == std::vector{Row{7}});
}

TEST_CASE("a listener sees records, waits, signals and what the host learns") {
  Lister listener;
  Bench bench({.listener = &listener});
  const DeviceEvent recorded;
  const DeviceEvent signalled;
  bench.device.wait(StreamKind::compute, recorded);
  bench.device.record(StreamKind::load, recorded);
  bench.device.record(StreamKind::load, recorded);
  REQUIRE_FALSE(bench.device.reached(recorded));
  bench.device.on_reached(recorded, [&] { listener.log.emplace_back("action"); });
  listener.log.clear();
  bench.timers.run_all();
  REQUIRE(listener.log ==
          Log{"recorded on 1", "seen", "action", "recorded again on 1", "waited on 0"});
  listener.log.clear();
  bench.device.signal(signalled);
  bench.device.signal(signalled);
  REQUIRE(listener.log == Log{"signalled"});
  REQUIRE(bench.device.reached(signalled));
  bench.device.on_reached(recorded, [&] { listener.log.emplace_back("action"); });
  REQUIRE(listener.log == Log{"signalled", "seen", "seen", "action"});
}

// Four pieces of 8 bytes each, 10 ns apart.
struct FourPieces : Schedule {
  std::size_t pieces() const override { return 4; }
};

Op copy(std::span<std::byte> target, std::span<const std::byte> source) {
  Op op{.name = "copy", .link = Link::host_link, .bytes = Bytes{40}};
  op.copies.add(target, source);
  return op;
}

TEST_CASE("a copy becomes visible in pieces, and its body runs after the last one") {
  FourPieces schedule;
  Bench bench({.schedule = &schedule});
  std::vector<std::byte> target(32);
  const std::vector<std::byte> source(32, std::byte{1});
  Op op = copy(target, source);
  op.body = [&] { bench.note("body"); };
  bench.device.enqueue(StreamKind::load, std::move(op));
  const auto visible = [&] { return std::ranges::count(target, std::byte{1}); };
  for (std::int64_t piece = 0; piece < 4; ++piece) {
    bench.timers.run_until(Nanoseconds{10 * piece + 9});
    REQUIRE(visible() == 8 * piece);
  }
  REQUIRE(bench.log.empty());
  bench.timers.run_all();
  REQUIRE(visible() == 32);
  REQUIRE(bench.log == Log{"body@40"});
}

TEST_CASE("whoever does not wait for a copy reads torn bytes") {
  FourPieces schedule;
  Bench bench({.schedule = &schedule});
  std::vector<std::byte> target(32);
  std::vector<std::byte> read(32);
  const std::vector<std::byte> source(32, std::byte{1});
  bench.device.enqueue(StreamKind::load, copy(target, source));
  bench.device.enqueue(StreamKind::compute, Op{"read", Link::host_link, Bytes{25},
                                               [&] { std::ranges::copy(target, read.begin()); }});
  bench.timers.run_all();
  REQUIRE(std::ranges::count(read, std::byte{1}) == 16);
  REQUIRE(std::ranges::count(target, std::byte{1}) == 32);
}

TEST_CASE("without a schedule a copy is one piece at its end") {
  Bench bench;
  std::vector<std::byte> target(32);
  bench.device.enqueue(StreamKind::load, copy(target, std::vector<std::byte>(32, std::byte{1})));
  bench.timers.run_until(Nanoseconds{39});
  REQUIRE(target == std::vector<std::byte>(32));
}

// Streams take turns; the load stream comes first, then the offload stream, then compute.
struct LoadsFirst : FourPieces {
  bool takes_turns() const override { return true; }
  StreamKind choose(std::span<const StreamKind> runnable) override {
    choices.emplace_back(runnable.begin(), runnable.end());
    for (StreamKind stream : {StreamKind::load, StreamKind::offload}) {
      if (std::ranges::count(runnable, stream) > 0) return stream;
    }
    return StreamKind::compute;
  }
  std::vector<std::vector<StreamKind>> choices;
};

TEST_CASE("streams take turns if the schedule says so, and it chooses the next one") {
  using enum StreamKind;
  LoadsFirst schedule;
  Bench bench({.schedule = &schedule});
  bench.op(compute, "compute", 10);
  bench.op(offload, "offload", 5);
  bench.op(offload, "offload 2", 0);
  bench.op(load, "load", 20);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"load@20", "offload@25", "offload 2@25", "compute@35"});
  // Heads in order of enqueueing; the last turn is no choice.
  using Choices = std::vector<std::vector<StreamKind>>;
  REQUIRE(schedule.choices ==
          Choices{{compute, offload, load}, {compute, offload}, {compute, offload}});
}

TEST_CASE("a stream that waits gets no turn") {
  LoadsFirst schedule;
  Bench bench({.schedule = &schedule});
  const DeviceEvent computed;
  bench.device.wait(StreamKind::load, computed);
  bench.op(StreamKind::load, "load", 20);
  bench.op(StreamKind::compute, "compute", 10);
  bench.device.record(StreamKind::compute, computed);
  bench.op(StreamKind::compute, "compute 2", 10);
  bench.timers.run_all();
  REQUIRE(bench.log == Log{"compute@10", "load@30", "compute 2@40"});
}

TEST_CASE("a turn is one piece of a copy") {
  LoadsFirst schedule;
  Bench bench({.schedule = &schedule});
  std::vector<std::byte> target(32);
  const std::vector<std::byte> source(32, std::byte{1});
  bench.device.enqueue(StreamKind::compute, copy(target, source));
  bench.timers.run_until(Nanoseconds{5});
  bench.op(StreamKind::load, "load", 20);
  bench.timers.run_until(Nanoseconds{29});
  REQUIRE(std::ranges::count(target, std::byte{1}) == 8);
  bench.timers.run_until(Nanoseconds{30});
  REQUIRE(bench.log == Log{"load@30"});
  REQUIRE(std::ranges::count(target, std::byte{1}) == 8);
  bench.timers.run_all();
  REQUIRE(std::ranges::count(target, std::byte{1}) == 32);
  REQUIRE(bench.timers.now() == Nanoseconds{60});
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
