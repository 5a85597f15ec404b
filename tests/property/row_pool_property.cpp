// RowPool against a set: every sequence of allocations, releases, splits, joins and shrinks keeps
// each row in exactly one place. Which free row comes next is the pool's own affair.
#include <map>
#include <set>

#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include "catch.h"
#include "device/stepped.h"
#include "event_recorder.h"
#include "fake_timers.h"
#include "pool/row_pool.h"
#include "property.h"

namespace lockstep {
namespace {

using HolderId = std::size_t;

// How many rows are free, in service, and held by whom.
struct Model {
  std::int64_t free = 0;
  std::int64_t in_service = 0;
  std::int64_t keep = 0;
  HolderId next = 0;
  std::map<HolderId, std::int64_t> held;

  // Freed rows that are too many leave at once.
  void put_back(std::int64_t rows) {
    free += rows;
    const std::int64_t surplus = std::min(free, std::max<std::int64_t>(0, in_service - keep));
    free -= surplus;
    in_service -= surplus;
  }
};

struct Sut {
  explicit Sut(std::int64_t capacity)
      : pool(device, events, RankId{0},
             {Component::full, {{LayerId{0}, Part::kv, Bytes{0}, Bytes{8}}}, Bytes{8}},
             Rows{capacity}) {}

  testing::FakeTimers timers;
  SteppedDevice device{timers, CostModel{}};
  testing::EventRecorder events;
  RowPool pool;
  std::map<HolderId, OwnedRows> holders;

  // Against the model as it is after a command.
  void check(const Model& after) {
    events.take();
    timers.run_all();
    RC_ASSERT(pool.free() == Rows{after.free});
    RC_ASSERT(pool.in_service() == Rows{after.in_service});
    std::set<Row> seen;
    const auto see = [&](std::span<const Row> rows) {
      for (Row row : rows) {
        RC_ASSERT(row != kTrapRow);
        RC_ASSERT(row.value() <= pool.capacity().value());
        RC_ASSERT(seen.insert(row).second);
      }
    };
    see(pool.free_list());
    see(pool.withdrawn());
    for (const auto& [id, rows] : holders) {
      see(rows.rows());
      RC_ASSERT(rows.size() == Rows{after.held.at(id)});
    }
    RC_ASSERT(seen.size() == pool.capacity().index());
    RC_ASSERT(holders.size() == after.held.size());
  }
};

using Command = rc::state::Command<Model, Sut>;

HolderId draw_holder(const Model& model) {
  std::vector<HolderId> ids;
  for (const auto& [id, rows] : model.held) ids.push_back(id);
  return ids.empty() ? 0 : *rc::gen::elementOf(ids);
}

class Allocate : public Command {
 public:
  explicit Allocate(const Model& model)
      : count_(*rc::gen::inRange<std::int64_t>(0, model.free + 3)) {}
  bool fits(const Model& model) const { return count_ <= model.free; }
  void apply(Model& model) const override {
    if (!fits(model)) return;
    model.free -= count_;
    model.held[model.next++] = count_;
  }
  void run(const Model& before, Sut& sut) const override {
    auto rows = sut.pool.allocate(kNoRequest, Rows{count_}, Purpose::forward);
    RC_ASSERT(rows.has_value() == fits(before));
    if (rows) sut.holders[before.next] = std::move(*rows);
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { out << "allocate " << count_; }

 private:
  std::int64_t count_;
};

class OnHolder : public Command {
 public:
  explicit OnHolder(const Model& model) : id_(draw_holder(model)) {}
  void checkPreconditions(const Model& model) const override { RC_PRE(model.held.contains(id_)); }

 protected:
  HolderId id_;
};

class Release : public OnHolder {
 public:
  using OnHolder::OnHolder;
  void apply(Model& model) const override {
    const std::int64_t rows = model.held.at(id_);
    model.held.erase(id_);
    model.put_back(rows);
  }
  void run(const Model& before, Sut& sut) const override {
    sut.holders.erase(id_);
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { out << "release holder " << id_; }
};

class Split : public OnHolder {
 public:
  explicit Split(const Model& model) : OnHolder(model) {
    const auto held = model.held.find(id_);
    count_ = held == model.held.end() ? 0 : *rc::gen::inRange<std::int64_t>(0, held->second + 1);
  }
  void checkPreconditions(const Model& model) const override {
    OnHolder::checkPreconditions(model);
    RC_PRE(count_ <= model.held.at(id_));
  }
  void apply(Model& model) const override {
    model.held.at(id_) -= count_;
    model.held[model.next++] = count_;
  }
  void run(const Model& before, Sut& sut) const override {
    sut.holders[before.next] = sut.holders.at(id_).take_front(Rows{count_});
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { out << "split " << count_ << " off " << id_; }

 private:
  std::int64_t count_ = 0;
};

class Join : public OnHolder {
 public:
  explicit Join(const Model& model) : OnHolder(model), other_(draw_holder(model)) {}
  void checkPreconditions(const Model& model) const override {
    OnHolder::checkPreconditions(model);
    RC_PRE(model.held.contains(other_));
    RC_PRE(other_ != id_);
  }
  void apply(Model& model) const override {
    model.held.at(id_) += model.held.at(other_);
    model.held.erase(other_);
  }
  void run(const Model& before, Sut& sut) const override {
    sut.holders.at(id_).append(std::move(sut.holders.at(other_)));
    sut.holders.erase(other_);
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { out << "join " << other_ << " to " << id_; }

 private:
  HolderId other_;
};

class Shrink : public Command {
 public:
  explicit Shrink(const Model& model) : keep_(*rc::gen::inRange<std::int64_t>(1, model.keep + 1)) {}
  void apply(Model& model) const override {
    model.keep = std::min(model.keep, keep_);
    model.put_back(0);
  }
  void run(const Model& before, Sut& sut) const override {
    sut.pool.shrink(Rows{keep_});
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { out << "shrink to " << keep_; }

 private:
  std::int64_t keep_;
};

}  // namespace

TEST_CASE("allocator = set") {
  testing::require_property("allocator = set", 300, [] {
    const auto capacity = *rc::gen::inRange<std::int64_t>(1, 13);
    Model model;
    model.free = model.in_service = model.keep = capacity;
    Sut sut(capacity);
    rc::state::check(model, sut, [](const Model& now) {
      return rc::gen::weightedOneOf<std::shared_ptr<const Command>>(
          {{4, rc::state::gen::execOneOfWithArgs<Allocate>()(now)},
           {3, rc::state::gen::execOneOfWithArgs<Release, Split, Join>()(now)},
           {1, rc::state::gen::execOneOfWithArgs<Shrink>()(now)}});
    });
  });
}

}  // namespace lockstep
