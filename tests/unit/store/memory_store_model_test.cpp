// MemoryStore against the plainest model of it: a map of values and a list of uses. Batches are
// waited for one by one here, so that the model needs no clock; memory_store_test.cpp has the
// interleavings.
#include <algorithm>
#include <map>
#include <string>

#include "catch.h"
#include "core/random.h"
#include "event_recorder.h"
#include "fake_timers.h"
#include "store/memory_store.h"

namespace lockstep {
namespace {

using Value = std::vector<std::byte>;

struct Model {
  std::size_t capacity = 0;
  std::map<ObjectKey, Value> values;
  std::vector<ObjectKey> uses;  // least recent first

  void use(const ObjectKey& key) {
    std::erase(uses, key);
    uses.push_back(key);
  }
  void drop(const ObjectKey& key) {
    std::erase(uses, key);
    values.erase(key);
  }
  std::size_t used() const {
    std::size_t sum = 0;
    for (const auto& [key, value] : values) sum += value.size();
    return sum;
  }
  bool put(const ObjectKey& key, const Value& value) {
    if (!values.contains(key)) {
      if (value.size() > capacity) return false;
      while (used() + value.size() > capacity) drop(ObjectKey(uses.front()));
      values[key] = value;
    }
    use(key);
    return true;
  }
};

class Walk {
 public:
  explicit Walk(std::uint64_t seed)
      : random_(seed),
        model_{.capacity = 8 + random_.below(56), .values = {}, .uses = {}},
        store_(timers_, events_,
               {.capacity = Bytes{static_cast<std::int64_t>(model_.capacity)},
                .link = {Nanoseconds{10}, 2.0},
                .lease = std::nullopt}) {}

  void step() {
    const std::uint64_t move = random_.below(10);
    if (move < 4) put();
    if (move >= 4 && move < 8) get();
    if (move == 8) remove();
    if (move == 9 && random_.below(10) == 0) clear();
    check();
  }

 private:
  ObjectKey key() { return "key" + std::to_string(random_.below(9)); }

  std::vector<StoreResult> wait(StoreTicket ticket) {
    timers_.run_all();
    return store_.poll(ticket).value();
  }

  void put() {
    std::vector<Value> payloads(1 + random_.below(3));
    std::vector<PutItem> items;
    for (Value& payload : payloads) {
      payload.resize(random_.below(24));
      for (std::byte& byte : payload) byte = static_cast<std::byte>(random_.next());
      items.push_back({key(), payload});
    }
    const std::vector<StoreResult> results = wait(store_.put(items));
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool fits = model_.put(items[i].key, payloads[i]);
      REQUIRE(results[i].status == (fits ? StoreStatus::ok : StoreStatus::no_room));
    }
  }

  void get() {
    const ObjectKey wanted = key();
    const std::size_t offset = random_.below(12);
    Value target(random_.below(24), std::byte{0xee});
    const StoreResult result =
        wait(store_.get({{wanted, Bytes{static_cast<std::int64_t>(offset)}, target}})).front();
    const auto found = model_.values.find(wanted);
    if (found == model_.values.end()) {
      REQUIRE(result.status == StoreStatus::missing);
      REQUIRE(std::ranges::all_of(target, [](std::byte byte) { return byte == std::byte{0xee}; }));
      return;
    }
    Value expected = target;
    std::size_t read = 0;
    for (; read < target.size() && offset + read < found->second.size(); ++read) {
      expected[read] = found->second[offset + read];
    }
    REQUIRE(target == expected);
    REQUIRE(result.bytes.index() == read);
    REQUIRE(result.status == (read == target.size() ? StoreStatus::ok : StoreStatus::short_read));
    model_.use(wanted);
  }

  void remove() {
    const std::vector<ObjectKey> keys{key(), key()};
    store_.remove(keys);
    for (const ObjectKey& each : keys) model_.drop(each);
  }

  void clear() {
    store_.restart(false);
    model_.values.clear();
    model_.uses.clear();
  }

  void check() {
    REQUIRE(store_.keys() == model_.uses);
    REQUIRE(store_.used().index() == model_.used());
    for (int i = 0; i < 9; ++i) {
      const std::vector<ObjectKey> one{"key" + std::to_string(i)};
      REQUIRE(store_.exists(one).front() == model_.values.contains(one.front()));
    }
  }

  SplitMix64 random_;
  Model model_;
  testing::FakeTimers timers_;
  testing::EventRecorder events_;
  MemoryStore store_;
};

TEST_CASE("random use agrees with a map and a list of uses") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Walk walk(seed);
    for (int i = 0; i < 150; ++i) walk.step();
  }
}

}  // namespace
}  // namespace lockstep
