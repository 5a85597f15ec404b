#include "store/memory_store.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "catch.h"
#include "event_recorder.h"
#include "fake_timers.h"

namespace lockstep {
namespace {

using testing::EventRecorder;
using testing::FakeTimers;
using Lines = std::vector<std::string>;
using Keys = std::vector<ObjectKey>;

// 100 ns latency and one byte per nanosecond; room for 40 bytes.
MemoryStoreConfig small_config() {
  return {.capacity = Bytes{40}, .link = {Nanoseconds{100}, 1.0}, .lease = std::nullopt};
}

std::vector<std::byte> bytes(std::string_view text) {
  const auto span = std::as_bytes(std::span(text));
  return {span.begin(), span.end()};
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string text(const std::vector<StoreResult>& results) {
  std::string line;
  for (const StoreResult& result : results) {
    line += (line.empty() ? "" : " ") + std::string(name(result.status)) + ":" +
            std::to_string(result.bytes.value());
  }
  return line;
}

struct Bench {
  FakeTimers timers;
  EventRecorder events;
  MemoryStore store;

  explicit Bench(MemoryStoreConfig config = small_config(), StoreFaults* faults = nullptr)
      : store(timers, events, config, faults) {}

  // Starts a put of one object whose payload is `payload`; the caller keeps that alive.
  StoreTicket start_put(std::string key, const std::vector<std::byte>& payload) {
    return store.put({PutItem{std::move(key), payload}});
  }
  std::string put(std::string key, std::string_view payload) {
    const std::vector<std::byte> source = bytes(payload);
    return wait(start_put(std::move(key), source));
  }
  // The results, and what was read.
  std::string get(std::string key, std::size_t offset, std::size_t size) {
    std::vector<std::byte> target(size, std::byte{'-'});
    const std::string results = wait(
        store.get({GetItem{std::move(key), Bytes{static_cast<std::int64_t>(offset)}, target}}));
    return results + " " + text(target);
  }
  std::string wait(StoreTicket ticket) {
    timers.run_all();
    return text(store.poll(ticket).value());
  }
  bool exists(const std::string& key) { return store.exists(Keys{key}).front(); }
};

TEST_CASE("what was put is there when the put is done, and is read back") {
  Bench bench;
  const auto payload = bytes("hello");
  const StoreTicket ticket = bench.start_put("a", payload);
  bench.timers.run_until(Nanoseconds{104});
  REQUIRE_FALSE(bench.store.poll(ticket).has_value());
  REQUIRE_FALSE(bench.exists("a"));
  REQUIRE(bench.events.take().empty());
  bench.timers.run_until(Nanoseconds{105});
  REQUIRE(bench.exists("a"));
  REQUIRE(text(bench.store.poll(ticket).value()) == "ok:5");
  REQUIRE(bench.events.take() == Lines{"0 put a stored accepted"});
  REQUIRE(bench.get("a", 0, 5) == "ok:5 hello");
  REQUIRE(bench.store.used() == Bytes{5});
}

TEST_CASE("a ticket ends when it has been polled as done") {
  Bench bench;
  const auto payload = bytes("x");
  const StoreTicket ticket = bench.start_put("a", payload);
  REQUIRE(bench.wait(ticket) == "ok:1");
  REQUIRE_THROWS_AS(bench.store.poll(ticket), ContractFailure);
}

TEST_CASE("objects are immutable: a second put keeps the old value and succeeds") {
  Bench bench;
  bench.put("a", "old");
  bench.events.take();
  REQUIRE(bench.put("a", "newer") == "ok:5");
  REQUIRE(bench.events.take() == Lines{"0 put a accepted"});
  REQUIRE(bench.get("a", 0, 3) == "ok:3 old");
  REQUIRE(bench.store.used() == Bytes{3});
}

TEST_CASE("of two puts of one key in flight, the first to be done is kept") {
  Bench bench;
  const auto first = bytes("first");
  const auto second = bytes("other");
  const StoreTicket a = bench.start_put("k", first);
  const StoreTicket b = bench.start_put("k", second);
  REQUIRE(bench.wait(a) == "ok:5");
  REQUIRE(bench.wait(b) == "ok:5");
  REQUIRE(bench.get("k", 0, 5) == "ok:5 first");
}

TEST_CASE("results are per key, in order") {
  Bench bench;
  bench.put("a", "aaaa");
  bench.put("c", "cc");
  std::vector<std::byte> target(8, std::byte{'-'});
  const std::span<std::byte> all(target);
  const StoreTicket ticket = bench.store.get({{"a", Bytes{1}, all.subspan(0, 2)},
                                              {"b", Bytes{0}, all.subspan(2, 2)},
                                              {"c", Bytes{0}, all.subspan(4, 4)}});
  REQUIRE(bench.wait(ticket) == "ok:2 missing:0 short_read:2");
  REQUIRE(text(target) == "aa--cc--");
  REQUIRE(bench.store.exists(Keys{"a", "b", "c"}) == std::vector<bool>{true, false, true});
}

TEST_CASE("a range that exceeds the object is a short read with what there is") {
  Bench bench;
  bench.put("a", "abcdef");
  REQUIRE(bench.get("a", 2, 4) == "ok:4 cdef");
  REQUIRE(bench.get("a", 4, 4) == "short_read:2 ef--");
  REQUIRE(bench.get("a", 6, 2) == "short_read:0 --");
  REQUIRE(bench.get("a", 9, 2) == "short_read:0 --");
  REQUIRE(bench.get("a", 6, 0) == "ok:0 ");
}

TEST_CASE("an empty batch and an empty object work") {
  Bench bench;
  REQUIRE(bench.wait(bench.store.get({})).empty());
  REQUIRE(bench.put("a", "") == "ok:0");
  REQUIRE(bench.exists("a"));
}

TEST_CASE("batches queue behind each other on the link, their latencies overlap") {
  Bench bench;
  const auto payload = bytes("0123456789");
  std::vector<Nanoseconds> done;
  bench.store.on_progress([&] { done.push_back(bench.timers.now()); });
  bench.start_put("a", payload);
  bench.start_put("b", payload);
  bench.timers.run_until(Nanoseconds{15});
  bench.start_put("c", payload);
  bench.timers.run_all();
  REQUIRE(done == std::vector{Nanoseconds{110}, Nanoseconds{120}, Nanoseconds{130}});
}

TEST_CASE("a get takes the time of the bytes that there are to read") {
  Bench bench;
  bench.put("a", "0123456789");
  bench.timers.run_until(Nanoseconds{1000});
  bench.get("a", 4, 100);
  REQUIRE(bench.timers.now() == Nanoseconds{1106});
  bench.get("nowhere", 0, 100);
  REQUIRE(bench.timers.now() == Nanoseconds{1206});
}

TEST_CASE("every listener hears of progress, and the results are there to poll then") {
  Bench bench;
  const auto payload = bytes("x");
  int heard = 0;
  StoreTicket ticket = 0;
  bench.store.on_progress([&] { ++heard; });
  bench.store.on_progress([&] { heard += bench.store.poll(ticket).has_value() ? 10 : 0; });
  ticket = bench.start_put("a", payload);
  bench.timers.run_all();
  REQUIRE(heard == 11);
}

TEST_CASE("the payload is read, and the target written, when the batch is due") {
  Bench bench;
  auto payload = bytes("early");
  const StoreTicket put = bench.start_put("a", payload);
  bench.timers.run_until(Nanoseconds{50});
  std::ranges::copy(bytes("later"), payload.begin());
  REQUIRE(bench.wait(put) == "ok:5");
  std::vector<std::byte> target(5, std::byte{'-'});
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  bench.timers.run_until(bench.timers.now() + Nanoseconds{104});
  REQUIRE(text(target) == "-----");
  REQUIRE(bench.wait(get) == "ok:5");
  REQUIRE(text(target) == "later");
}

TEST_CASE("a full store evicts the least recently used object; get and put count as use") {
  Bench bench;
  for (const char* key : {"a", "b", "c", "d"}) bench.put(key, "0123456789");
  bench.get("a", 0, 1);        // b is now the oldest
  bench.put("b", "again");     // kept, but used: now c
  REQUIRE(bench.exists("c"));  // no use
  REQUIRE(bench.store.keys() == Keys{"c", "d", "a", "b"});
  bench.events.take();
  REQUIRE(bench.put("e", "0123456789") == "ok:10");
  REQUIRE(bench.events.take() == Lines{"0 removed c", "0 put e stored accepted"});
  REQUIRE(bench.put("f", "01234567890123456789") == "ok:20");
  REQUIRE(bench.events.take() == Lines{"0 removed d", "0 removed a", "0 put f stored accepted"});
  REQUIRE(bench.store.keys() == Keys{"b", "e", "f"});
  REQUIRE(bench.store.used() == Bytes{40});
}

TEST_CASE("an object larger than the store is refused, and nothing is evicted for it") {
  Bench bench;
  bench.put("a", "0123456789");
  bench.events.take();
  REQUIRE(bench.put("big", std::string(41, 'x')) == "no_room:0");
  REQUIRE(bench.events.take() == Lines{"0 put big"});
  REQUIRE(bench.store.keys() == Keys{"a"});
  REQUIRE(bench.put("fits", std::string(40, 'x')) == "ok:40");
  REQUIRE(bench.store.keys() == Keys{"fits"});
}

TEST_CASE("what exists may be gone when its read is due: removed") {
  Bench bench;
  bench.put("a", "0123456789");
  std::vector<std::byte> target(10, std::byte{'-'});
  REQUIRE(bench.exists("a"));
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  bench.store.remove(Keys{"a", "unknown"});
  REQUIRE(bench.wait(get) == "missing:0");
  REQUIRE(text(target) == "----------");
}

TEST_CASE("what exists may be gone when its read is due: evicted by a put that was under way") {
  Bench bench;
  bench.put("a", "0123456789");
  const auto payload = bytes(std::string(40, 'x'));
  bench.start_put("b", payload);
  std::vector<std::byte> target(10, std::byte{'-'});
  REQUIRE(bench.exists("a"));
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  REQUIRE(bench.wait(get) == "missing:0");
  REQUIRE(text(target) == "----------");
}

TEST_CASE("a read that was missing when it started finds what has been put meanwhile") {
  Bench bench;
  const auto payload = bytes("abc");
  bench.start_put("a", payload);
  std::vector<std::byte> target(3, std::byte{'-'});
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  REQUIRE(bench.wait(get) == "ok:3");
  REQUIRE(text(target) == "abc");
}

TEST_CASE("remove reports what went, with the rank of the key") {
  Bench bench;
  bench.put("0a/full/3of4", "x");
  bench.put("0a/mamba/12of16", "y");
  bench.events.take();
  bench.store.remove(Keys{"0a/full/3of4", "0a/full/2of4", "0a/mamba/12of16"});
  REQUIRE(bench.events.take() == Lines{"3 removed 0a/full/3of4", "12 removed 0a/mamba/12of16"});
  REQUIRE(bench.store.used() == Bytes{0});
}

TEST_CASE("the rank of a key is the number before \"of\"") {
  REQUIRE(rank_of("00ff/swa/0of1") == RankId{0});
  REQUIRE(rank_of("00ff/swa/7of8") == RankId{7});
  REQUIRE(rank_of("00ff/swa/10of16") == RankId{10});
  REQUIRE(rank_of("7of8") == RankId{0});
  REQUIRE(rank_of("a/b/") == RankId{0});
  REQUIRE(rank_of("a/b/7") == RankId{0});
  REQUIRE(rank_of("") == RankId{0});
}

TEST_CASE("a restart without data loses the objects, and running batches fail when they are due") {
  Bench bench;
  bench.put("a", "abc");
  const auto payload = bytes("def");
  std::vector<std::byte> target(3, std::byte{'-'});
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  const StoreTicket put = bench.start_put("b", payload);
  bench.events.take();
  bench.store.restart(false);
  REQUIRE(bench.events.take() == Lines{"0 cleared"});
  REQUIRE_FALSE(bench.store.poll(get).has_value());
  REQUIRE(bench.wait(get) == "failed:0");
  REQUIRE(bench.wait(put) == "failed:0");
  REQUIRE(text(target) == "---");
  REQUIRE(bench.store.keys().empty());
  REQUIRE(bench.store.used() == Bytes{0});
  REQUIRE(bench.put("a", "new") == "ok:3");
}

TEST_CASE("results that were ready before a restart stay ready") {
  Bench bench;
  const auto payload = bytes("abc");
  const StoreTicket put = bench.start_put("a", payload);
  bench.timers.run_all();
  bench.store.restart(false);
  REQUIRE(bench.wait(put) == "ok:3");
}

TEST_CASE("a restart with the data kept fails only what is under way") {
  Bench bench;
  bench.put("a", "abc");
  std::vector<std::byte> target(3, std::byte{'-'});
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  const auto payload = bytes("def");
  const StoreTicket put = bench.start_put("b", payload);
  bench.events.take();
  bench.store.restart(true);
  REQUIRE(bench.events.take().empty());
  REQUIRE(bench.wait(get) == "failed:0");
  REQUIRE(bench.wait(put) == "failed:0");
  REQUIRE(bench.store.keys() == Keys{"a"});
  REQUIRE(bench.get("a", 0, 3) == "ok:3 abc");
}

TEST_CASE("batches of a client that is gone touch nothing any more") {
  Bench bench;
  bench.put("a", "abc");
  std::vector<std::byte> target(3, std::byte{'-'});
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  const auto payload = bytes("def");
  bench.start_put("b", payload);
  bench.store.drop_batches();
  bench.timers.run_all();
  REQUIRE(text(target) == "---");
  REQUIRE(bench.store.keys() == Keys{"a"});
  REQUIRE_THROWS_AS(bench.store.poll(get), ContractFailure);
}

TEST_CASE("a store may go while batches run") {
  FakeTimers timers;
  EventRecorder events;
  const auto payload = bytes("abc");
  {
    MemoryStore(timers, events, small_config()).put({{"a", payload}});
  }
  timers.run_all();
  REQUIRE(events.take().empty());
}

// ---------------------------------------------------------------- leases

MemoryStoreConfig leased_config(std::int64_t lease) {
  MemoryStoreConfig config = small_config();
  config.lease = Nanoseconds{lease};
  return config;
}

TEST_CASE("a read protects its object from eviction while its lease runs") {
  Bench bench(leased_config(500));
  bench.put("a", "0123456789");
  bench.put("b", "0123456789");
  std::vector<std::byte> target(10);
  const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
  REQUIRE(bench.put("c", std::string(30, 'x')) == "ok:30");
  REQUIRE(bench.store.keys() == Keys{"a", "c"});
  REQUIRE(bench.wait(get) == "ok:10");
  REQUIRE(bench.put("d", std::string(40, 'x')) == "no_room:0");
  bench.timers.run_until(bench.timers.now() + Nanoseconds{500});
  REQUIRE(bench.put("d", std::string(40, 'x')) == "ok:40");
}

TEST_CASE("a read that is due after its lease has ended fails for that key alone") {
  Bench bench(leased_config(109));
  bench.put("a", "0123456789");
  std::vector<std::byte> target(10, std::byte{'-'});
  const StoreTicket late = bench.store.get({{"a", Bytes{0}, target}, {"b", Bytes{0}, target}});
  REQUIRE(bench.wait(late) == "lease_ended:0 missing:0");
  REQUIRE(text(target) == "----------");
  REQUIRE(bench.get("a", 0, 9) == "ok:9 012345678");
}

// ---------------------------------------------------------------- injected faults

// Answers with what the test has set, and keeps the order of the questions.
struct PlannedFaults : StoreFaults {
  bool invert_exists = false;
  GetFault next_get;
  PutFault next_put;
  Lines asked;

  bool on_exists(const ObjectKey& key, bool present) override {
    asked.push_back("exists " + key);
    return present != invert_exists;
  }
  GetFault on_get(const GetItem& item) override {
    asked.push_back("get " + item.key);
    return std::exchange(next_get, {});
  }
  PutFault on_put(const PutItem& item) override {
    asked.push_back("put " + item.key);
    return std::exchange(next_put, {});
  }
};

struct FaultyBench : PlannedFaults, Bench {
  FaultyBench() : Bench(small_config(), this) {}
};

TEST_CASE("faults are asked once per item, in order, when the call is made") {
  FaultyBench bench;
  const auto payload = bytes("x");
  bench.store.put({{"a", payload}, {"b", payload}});
  bench.store.get({{"c", Bytes{0}, {}}});
  bench.store.exists(Keys{"d", "e"});
  const Lines expected{"put a", "put b", "get c", "exists d", "exists e"};
  REQUIRE(bench.asked == expected);
  bench.timers.run_all();
  REQUIRE(bench.asked == expected);
}

TEST_CASE("an injected answer of exists replaces the truth") {
  FaultyBench bench;
  bench.put("a", "x");
  bench.invert_exists = true;
  bench.events.take();
  REQUIRE(bench.store.exists(Keys{"a", "b"}) == std::vector<bool>{false, true});
  REQUIRE(bench.events.take() == Lines{"0 denied a", "0 claimed b"});
  REQUIRE(bench.get("a", 0, 1) == "ok:1 x");
}

TEST_CASE("injected faults of a read: status, short, corrupt bit, delay") {
  FaultyBench bench;
  bench.put("a", "abcd");
  const Nanoseconds start = bench.timers.now();
  SECTION("status") {
    bench.next_get.status = StoreStatus::failed;
    REQUIRE(bench.get("a", 0, 4) == "failed:0 ----");
  }
  SECTION("short") {
    bench.next_get.short_to = Bytes{3};
    REQUIRE(bench.get("a", 0, 4) == "short_read:3 abc-");
  }
  SECTION("short of more than is read changes nothing") {
    bench.next_get.short_to = Bytes{9};
    REQUIRE(bench.get("a", 0, 4) == "ok:4 abcd");
  }
  SECTION("corrupt: bit 9 is bit 1 of the second byte, 'b' ^ 2 = '`'") {
    bench.next_get.corrupt_bit = 9;
    REQUIRE(bench.get("a", 0, 4) == "ok:4 a`cd");
    REQUIRE(bench.get("a", 0, 4) == "ok:4 abcd");
  }
  SECTION("corrupt counts modulo the bits that arrived: 41 = 32 + 9") {
    bench.next_get.corrupt_bit = 41;
    REQUIRE(bench.get("a", 0, 4) == "ok:4 a`cd");
  }
  SECTION("delay") {
    bench.next_get.batch.delay = Nanoseconds{1000};
    REQUIRE(bench.get("a", 0, 4) == "ok:4 abcd");
    REQUIRE(bench.timers.now() - start == Nanoseconds{1104});
  }
}

TEST_CASE("injected faults of a put: status, delay") {
  FaultyBench bench;
  SECTION("status") {
    bench.next_put.status = StoreStatus::failed;
    REQUIRE(bench.put("a", "abcd") == "failed:0");
    REQUIRE_FALSE(bench.store.exists(Keys{"a"}).front());
    REQUIRE(bench.events.take() == Lines{"0 put a"});
  }
  SECTION("delay of one batch lets a later one overtake it") {
    const auto payload = bytes("x");
    bench.next_put.batch.delay = Nanoseconds{1000};
    const StoreTicket slow = bench.start_put("slow", payload);
    const StoreTicket fast = bench.start_put("fast", payload);
    bench.timers.run_until(Nanoseconds{500});
    REQUIRE_FALSE(bench.store.poll(slow).has_value());
    REQUIRE(bench.store.poll(fast).has_value());
    REQUIRE(bench.wait(slow) == "ok:1");
    REQUIRE(bench.timers.now() == Nanoseconds{1101});
  }
}

TEST_CASE("a late completion is reported later, but the batch takes effect in time") {
  FaultyBench bench;
  SECTION("put: others find the object before its put is reported") {
    const auto payload = bytes("x");
    bench.next_put.batch.late = Nanoseconds{1000};
    const StoreTicket put = bench.start_put("a", payload);
    bench.timers.run_until(Nanoseconds{101});  // 100 of latency and 1 byte
    REQUIRE(bench.store.exists(Keys{"a"}).front());
    REQUIRE_FALSE(bench.store.poll(put).has_value());
    REQUIRE(bench.wait(put) == "ok:1");
    REQUIRE(bench.timers.now() == Nanoseconds{1101});
  }
  SECTION("get: the object may go between the read and its report") {
    bench.put("a", "abc");
    std::vector<std::byte> target(3, std::byte{'-'});
    bench.next_get.batch.late = Nanoseconds{1000};
    const StoreTicket get = bench.store.get({{"a", Bytes{0}, target}});
    bench.timers.run_until(bench.timers.now() + Nanoseconds{103});
    bench.store.remove(Keys{"a"});
    REQUIRE_FALSE(bench.store.poll(get).has_value());
    REQUIRE(bench.wait(get) == "ok:3");
    REQUIRE(text(target) == "abc");
  }
  SECTION("a restart of the store does not undo what took effect") {
    const auto payload = bytes("x");
    bench.next_put.batch.late = Nanoseconds{1000};
    const StoreTicket put = bench.start_put("a", payload);
    bench.timers.run_until(Nanoseconds{101});
    bench.store.restart(true);
    REQUIRE(bench.wait(put) == "ok:1");
  }
}

TEST_CASE("a reordered completion is reported after those that are under way when it is due") {
  FaultyBench bench;
  const auto payload = bytes("x");
  Lines order;
  std::map<std::string, StoreTicket> open;
  bench.store.on_progress([&] {
    for (auto ticket = open.begin(); ticket != open.end();) {
      const bool done = bench.store.poll(ticket->second).has_value();
      if (done) order.push_back(ticket->first);
      ticket = done ? open.erase(ticket) : std::next(ticket);
    }
  });
  SECTION("the first of three comes last") {
    bench.next_put.batch.reordered = true;
    for (const char* key : {"a", "b", "c"}) open[key] = bench.start_put(key, payload);
    bench.timers.run_until(Nanoseconds{101});
    REQUIRE(bench.store.exists(Keys{"a"}).front());  // it took effect in time
    bench.timers.run_all();
    REQUIRE(order == Lines{"b", "c", "a"});
  }
  SECTION("two neighbours that both wait do not wait for each other") {
    bench.next_put.batch.reordered = true;
    open["a"] = bench.start_put("a", payload);
    bench.next_put.batch.reordered = true;
    open["b"] = bench.start_put("b", payload);
    open["c"] = bench.start_put("c", payload);
    bench.timers.run_all();
    REQUIRE(order == Lines{"c", "a", "b"});
  }
  SECTION("nothing else is under way: it is reported as ever") {
    bench.next_put.batch.reordered = true;
    open["a"] = bench.start_put("a", payload);
    bench.timers.run_all();
    REQUIRE(order == Lines{"a"});
    REQUIRE(bench.timers.now() == Nanoseconds{101});
  }
}

}  // namespace
}  // namespace lockstep
