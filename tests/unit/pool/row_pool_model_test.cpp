// RowPool against the plainest model of it: a stack of free rows and a set of owned ones.
#include <set>

#include "catch.h"
#include "core/random.h"
#include "device/stepped.h"
#include "event_recorder.h"
#include "fake_timers.h"
#include "pool/row_pool.h"

namespace lockstep {
namespace {

struct Model {
  std::vector<Row> stack;  // the last one is handed out next
  std::set<Row> owned;

  explicit Model(std::uint32_t capacity) {
    for (std::uint32_t row = capacity; row >= 1; --row) stack.push_back(Row{row});
  }
  std::vector<Row> take(std::size_t count) {
    std::vector<Row> taken;
    for (; count > 0; --count) {
      taken.push_back(stack.back());
      stack.pop_back();
      REQUIRE(owned.insert(taken.back()).second);
    }
    return taken;
  }
  void give_back(std::span<const Row> rows) {
    for (Row row : rows) {
      REQUIRE(owned.erase(row) == 1);
      stack.push_back(row);
    }
  }
};

class Walk {
 public:
  explicit Walk(std::uint64_t seed)
      : random_(seed),
        capacity_(static_cast<std::uint32_t>(1 + random_.below(12))),
        device_(timers_, CostModel{}),
        pool_(device_, events_, RankId{0}, layout(), Rows{capacity_}),
        model_(capacity_) {}

  void step() {
    const std::uint64_t move = random_.below(5);
    if (move <= 1) allocate();
    if (move == 2) release();
    if (move == 3) split();
    if (move == 4) join();
    events_.take();
    check();
  }

 private:
  static RowLayout layout() {
    return {Component::full, {{LayerId{0}, Part::kv, Bytes{0}, Bytes{8}}}, Bytes{8}};
  }

  void allocate() {
    const std::size_t count = random_.below(capacity_ + 2);
    const bool fits = count <= model_.stack.size();
    auto rows =
        pool_.allocate(kNoRequest, Rows{static_cast<std::int64_t>(count)}, Purpose::forward);
    REQUIRE(rows.has_value() == fits);
    if (!fits) return;
    REQUIRE(std::vector<Row>(rows->rows().begin(), rows->rows().end()) == model_.take(count));
    holders_.push_back(std::move(*rows));
  }

  OwnedRows& pick() { return holders_[random_.below(holders_.size())]; }

  void release() {
    if (holders_.empty()) return;
    OwnedRows& rows = pick();
    model_.give_back(rows.rows());
    if (random_.below(2) == 0) rows.release();
    rows = OwnedRows();
  }

  void split() {
    if (holders_.empty()) return;
    OwnedRows& rows = pick();
    const auto count = random_.below(static_cast<std::uint64_t>(rows.size().value()) + 1);
    OwnedRows front = rows.take_front(Rows{static_cast<std::int64_t>(count)});
    holders_.push_back(std::move(front));
  }

  void join() {
    if (holders_.size() < 2) return;
    OwnedRows last = std::move(holders_.back());
    holders_.pop_back();
    pick().append(std::move(last));
  }

  // Every row has one place: the free list, in the model's order, or one holder.
  void check() {
    const std::span<const Row> free = pool_.free_list();
    REQUIRE(std::vector<Row>(free.begin(), free.end()) == model_.stack);
    std::set<Row> held;
    for (const OwnedRows& rows : holders_) {
      for (Row row : rows.rows()) REQUIRE(held.insert(row).second);
    }
    REQUIRE(held == model_.owned);
    REQUIRE(held.size() + free.size() == capacity_);
  }

  SplitMix64 random_;
  std::uint32_t capacity_;
  testing::FakeTimers timers_;
  SteppedDevice device_;
  testing::EventRecorder events_;
  RowPool pool_;
  Model model_;
  std::vector<OwnedRows> holders_;
};

TEST_CASE("random use keeps every row in exactly one place, in LIFO order") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    Walk walk(seed);
    for (int i = 0; i < 100; ++i) walk.step();
  }
}

}  // namespace
}  // namespace lockstep
