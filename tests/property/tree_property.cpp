// The radix tree against a flat map, command by command: what it holds and where, who locks it,
// what it would evict, and what MATCH finds in it.
#include <rapidcheck.h>
#include <rapidcheck/state.h>

#include "answering_store.h"
#include "catch.h"
#include "device/stepped.h"
#include "event_recorder.h"
#include "fake_timers.h"
#include "flat_tree.h"
#include "link/match.h"
#include "property.h"

namespace lockstep {
namespace {

using testing::FlatTree;
using testing::Prefix;

constexpr FlatTree::Capacity kCapacity{24, 18, 9};
constexpr std::size_t kMostPages = 6;
constexpr PageHash kSpace{};

// Names the whole prefix, as a real page hash does, and can be read back.
PageHash hash_of(const Prefix& prefix) {
  PageHash hash;
  for (std::size_t i = 0; i < prefix.size(); ++i) {
    hash.bytes[i] = static_cast<std::byte>(prefix[i] + 1);
  }
  return hash;
}

Prefix prefix_of(const PageHash& hash) {
  Prefix prefix;
  for (std::byte page : hash.bytes) {
    if (page != std::byte{}) prefix.push_back(std::to_integer<int>(page) - 1);
  }
  return prefix;
}

std::vector<PageHash> hashes_of(const Prefix& path) {
  std::vector<PageHash> hashes;
  for (std::size_t pages = 1; pages <= path.size(); ++pages) {
    hashes.push_back(hash_of({path.begin(), path.begin() + static_cast<std::ptrdiff_t>(pages)}));
  }
  return hashes;
}

Geometry geometry_of(std::int64_t window_pages) {
  Geometry geometry;
  geometry.window = Tokens{window_pages + 1};
  geometry.has_swa = geometry.has_mamba = true;
  return geometry;
}

std::vector<PoolSpec> pools() {
  std::vector<PoolSpec> specs;
  for (Component component : kComponents) {
    const Part part = component == Component::mamba ? Part::temporal : Part::kv;
    specs.push_back({{component, {{LayerId{0}, part, Bytes{0}, Bytes{8}}}, Bytes{8}},
                     Tokens{1},
                     Rows{kCapacity[index(component)]}});
  }
  return specs;
}

struct Sut {
  explicit Sut(std::int64_t window_pages) : geometry(geometry_of(window_pages)) {}

  Geometry geometry;
  testing::FakeTimers timers;
  SteppedDevice device{timers, CostModel{}};
  testing::EventRecorder events;
  PoolGroup group{device, events, RankId{0}, pools()};
  RadixTree tree{geometry,
                 group,
                 events,
                 RankId{0},
                 std::make_unique<EvictionPolicy>(),
                 std::make_unique<NodeSplitter>()};
  testing::AnsweringStore store;
  KeyScheme keys{Tokens{1}, RankId{0}, 1};
  CacheConfig config;
  Rank rank{RankId{0}, geometry, config, device, group, tree, store, keys, events};
  std::map<std::uint64_t, LockTicket> tickets;
  // Which row was adopted for which page, last.
  std::array<std::map<Prefix, Row>, 3> adopted;

  std::vector<Row> take(Component component, std::size_t count) {
    auto rows = group.pool(component).allocate(kNoRequest, Rows{static_cast<std::int64_t>(count)},
                                               Purpose::forward);
    RC_ASSERT(rows.has_value());
    return rows->disown();
  }

  void check(const FlatTree& after);

 private:
  void check_node(const FlatTree& after, const Node& node, std::size_t& entries);
  void check_row(Component component, const Prefix& at, Row row, bool expected,
                 std::array<std::set<Row>, 3>& seen) const;
  std::array<std::set<Row>, 3> seen_;
};

void Sut::check_row(Component component, const Prefix& at, Row row, bool expected,
                    std::array<std::set<Row>, 3>& seen) const {
  RC_ASSERT((row != kTrapRow) == expected);
  if (!expected) return;
  RC_ASSERT(seen[index(component)].insert(row).second);
  RC_ASSERT(adopted[index(component)].at(at) == row);
}

void Sut::check_node(const FlatTree& after, const Node& node, std::size_t& entries) {
  if (node.is_root()) return;
  RC_ASSERT(!node.hashes.empty());
  for (std::size_t i = 0; i < node.hashes.size(); ++i) {
    const Prefix at = prefix_of(node.hashes[i]);
    const auto found = after.entries().find(at);
    RC_ASSERT(found != after.entries().end());
    RC_ASSERT(at.size() == node.begin.index() + i + 1);
    const FlatTree::Entry& entry = found->second;
    const bool is_last = i + 1 == node.hashes.size();
    RC_ASSERT(entry.ends == is_last);
    check_row(Component::full, at, node.full[i], true, seen_);
    check_row(Component::swa, at, node.swa[i], entry.swa, seen_);
    RC_ASSERT(node.full_locks == after.locks(Component::full, at));
    RC_ASSERT(node.swa_locks[i] == after.locks(Component::swa, at));
    if (is_last) {
      check_row(Component::mamba, at, node.state, entry.state, seen_);
      RC_ASSERT(node.state_locks == after.locks(Component::mamba, at));
    }
    ++entries;
  }
}

void Sut::check(const FlatTree& after) {
  events.take();
  timers.run_all();
  std::size_t entries = 0;
  seen_ = {};
  tree.for_each_node([&](Node& node) { check_node(after, node, entries); });
  RC_ASSERT(entries == after.entries().size());
  for (Component component : kComponents) {
    RC_ASSERT(group.pool(component).free() == Rows{after.free(component)});
    RC_ASSERT(tree.evictable(component) == Rows{after.evictable(component)});
  }
}

using Command = rc::state::Command<FlatTree, Sut>;

// Three pages to choose from, the first one most often, so that sequences share a lot.
Prefix draw_path() {
  const auto page = rc::gen::weightedElement<int>({{6, 0}, {2, 1}, {1, 2}});
  const auto size = *rc::gen::inRange<std::size_t>(1, kMostPages + 1);
  return *rc::gen::container<Prefix>(size, page);
}

class OnPath : public Command {
 protected:
  Prefix path_ = draw_path();
  void show_path(std::ostream& out, const char* what) const {
    out << what;
    for (int page : path_) out << ' ' << page;
  }
};

class Insert : public OnPath {
 public:
  explicit Insert(const FlatTree& model)
      : swa_from_(*rc::gen::inRange<std::size_t>(0, model.window_begin(path_.size()) + 1)) {}
  void checkPreconditions(const FlatTree& model) const override {
    const auto pages = static_cast<std::int64_t>(path_.size());
    RC_PRE(swa_from_ <= model.window_begin(path_.size()));
    RC_PRE(model.free(Component::full) >= pages);
    RC_PRE(model.free(Component::swa) >= pages);
    RC_PRE(model.free(Component::mamba) >= 1);
  }
  void apply(FlatTree& model) const override { model.insert(path_, swa_from_); }
  void run(const FlatTree& before, Sut& sut) const override {
    FlatTree after = before;
    const FlatTree::Adopted expected = after.insert(path_, swa_from_);
    const std::vector<PageHash> hashes = hashes_of(path_);
    const std::vector<Row> full = sut.take(Component::full, path_.size());
    const std::vector<Row> swa = sut.take(Component::swa, path_.size() - swa_from_);
    const Row state = sut.take(Component::mamba, 1).front();
    IncomingRows incoming;
    incoming.hashes = hashes;
    incoming.full = full;
    incoming.swa_from = Pages{static_cast<std::int64_t>(swa_from_)};
    incoming.swa = swa;
    incoming.state = state;
    const InsertOutcome outcome = sut.tree.insert(kSpace, incoming, std::nullopt);
    sut.tree.free_duplicates(outcome);
    if (outcome.mamba_exist) sut.group.pool(Component::mamba).release({&state, 1});

    const auto note = [&](Component component, std::size_t page, Row row) {
      sut.adopted[index(component)][prefix_of(hashes[page])] = row;
    };
    for (std::size_t page : expected.full) note(Component::full, page, full[page]);
    for (std::size_t page : expected.swa) note(Component::swa, page, swa[page - swa_from_]);
    if (expected.state) note(Component::mamba, path_.size() - 1, state);
    RC_ASSERT(outcome.state_adopted == expected.state);
    RC_ASSERT(outcome.mamba_exist == !expected.state);
    RC_ASSERT(prefix_of(outcome.node->last_hash()) == path_);
    sut.check(after);
  }
  void show(std::ostream& out) const override {
    show_path(out, "insert");
    out << ", window rows from " << swa_from_;
  }

 private:
  std::size_t swa_from_;
};

class Match : public OnPath {
 public:
  explicit Match(const FlatTree&) {}
  std::size_t hit(const FlatTree& model) const {
    return model.hit(path_, path_.size() - 1);  // the last token is always computed
  }
  void apply(FlatTree& model) const override {
    const std::size_t pages = hit(model);
    if (pages == 0) return;
    const Prefix at(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(pages));
    model.lock(at, model.window_begin(pages));
    model.touch(at);
  }
  void run(const FlatTree& before, Sut& sut) const override {
    RequestState request;
    request.namespace_hash = kSpace;
    request.hashes = hashes_of(path_);
    const Tokens length{static_cast<std::int64_t>(path_.size())};
    MatchPhase(sut.rank).run(request, length, true);
    RC_ASSERT(request.device_hit.index() == hit(before));
    RC_ASSERT(request.full_matched.index() == before.matched(path_));
    RC_ASSERT(request.lock.open() == (hit(before) > 0));
    if (request.lock.open()) sut.tickets[before.next_ticket()] = std::move(request.lock);
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { show_path(out, "match"); }
};

// A node is made to end at a page, and somebody locks it.
class SplitAndLock : public OnPath {
 public:
  explicit SplitAndLock(const FlatTree&)
      : swa_from_(*rc::gen::inRange<std::size_t>(0, path_.size() + 1)) {}
  void checkPreconditions(const FlatTree& model) const override {
    RC_PRE(model.matched(path_) == path_.size());
    RC_PRE(swa_from_ <= path_.size());
  }
  void apply(FlatTree& model) const override {
    model.split(path_);
    model.lock(path_, swa_from_);
  }
  void run(const FlatTree& before, Sut& sut) const override {
    const Pages end{static_cast<std::int64_t>(path_.size())};
    const std::vector<PageHash> hashes = hashes_of(path_);
    Node& node = sut.tree.node_at(sut.tree.walk(kSpace, hashes), end);
    const PageRange swa{Pages{static_cast<std::int64_t>(swa_from_)}, end};
    sut.tickets[before.next_ticket()] = sut.tree.lock(kNoRequest, node, LockHolder::offload, swa);
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override {
    show_path(out, "lock");
    out << ", window rows from " << swa_from_;
  }

 private:
  std::size_t swa_from_;
};

class Unlock : public Command {
 public:
  explicit Unlock(const FlatTree& model)
      : ticket_(*rc::gen::inRange<std::uint64_t>(0, model.next_ticket() + 1)) {}
  void checkPreconditions(const FlatTree& model) const override {
    RC_PRE(model.tickets().contains(ticket_));
  }
  void apply(FlatTree& model) const override { model.unlock(ticket_); }
  void run(const FlatTree& before, Sut& sut) const override {
    sut.tickets.erase(ticket_);
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { out << "unlock ticket " << ticket_; }

 private:
  std::uint64_t ticket_;
};

class Evict : public Command {
 public:
  explicit Evict(const FlatTree&)
      : component_(*rc::gen::elementOf(std::vector(kComponents.begin(), kComponents.end()))),
        shortfall_(*rc::gen::inRange<std::int64_t>(1, 5)) {}
  void apply(FlatTree& model) const override { model.evict(component_, shortfall_); }
  void run(const FlatTree& before, Sut& sut) const override {
    sut.tree.evict(component_, Rows{shortfall_}, EvictionCause::asked);
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override {
    out << "evict " << shortfall_ << " of " << name(component_);
  }

 private:
  Component component_;
  std::int64_t shortfall_;
};

class Clear : public Command {
 public:
  explicit Clear(const FlatTree&) {}
  void checkPreconditions(const FlatTree& model) const override { RC_PRE(model.tickets().empty()); }
  void apply(FlatTree& model) const override { model.clear(); }
  void run(const FlatTree& before, Sut& sut) const override {
    sut.tree.clear();
    sut.check(nextState(before));
  }
  void show(std::ostream& out) const override { out << "clear"; }
};

}  // namespace

TEST_CASE("tree = flat map") {
  testing::require_property("tree = flat map", 1000, [] {
    const auto window_pages = *rc::gen::inRange<std::int64_t>(1, 4);
    const FlatTree model(static_cast<std::size_t>(window_pages), kCapacity);
    Sut sut(window_pages);
    rc::state::check(model, sut, [](const FlatTree& now) {
      return rc::gen::weightedOneOf<std::shared_ptr<const Command>>(
          {{4, rc::state::gen::execOneOfWithArgs<Insert>()(now)},
           {4, rc::state::gen::execOneOfWithArgs<Match, SplitAndLock, Unlock, Evict>()(now)},
           {1, rc::state::gen::execOneOfWithArgs<Evict, Unlock, Clear>()(now)}});
    });
    sut.tickets.clear();
  });
}

// A split changes where nodes end and nothing else: every sequence is found as far as before, and
// the same boundaries are legal hits.
TEST_CASE("split preserves lookup") {
  testing::require_property("split preserves lookup", 2000, [] {
    const auto window_pages = *rc::gen::inRange<std::int64_t>(1, 4);
    FlatTree model(static_cast<std::size_t>(window_pages), kCapacity);
    Sut sut(window_pages);
    for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
      const Insert insert(model);
      insert.run(model, sut);
      insert.apply(model);
    }
    const Prefix path = draw_path();
    const std::vector<PageHash> hashes = hashes_of(path);
    const TreePath before = sut.tree.walk(kSpace, hashes);
    RC_PRE(before.matched > Pages{0});
    const auto found = [&] {
      std::vector<std::int64_t> lengths;
      RequestState request;
      request.namespace_hash = kSpace;
      request.hashes = hashes;
      for (std::int64_t length = 1; length <= static_cast<std::int64_t>(path.size()) + 1;
           ++length) {
        MatchPhase(sut.rank).run(request, Tokens{length}, true);
        lengths.push_back(request.device_hit.value());
        lengths.push_back(request.full_matched.value());
      }
      return lengths;
    };
    const std::vector<std::int64_t> lengths = found();
    const Pages at{*rc::gen::inRange<std::int64_t>(1, before.matched.value() + 1)};
    RC_ASSERT(sut.tree.node_at(before, at).end() == at);
    RC_ASSERT(found() == lengths);
  });
}

}  // namespace lockstep
