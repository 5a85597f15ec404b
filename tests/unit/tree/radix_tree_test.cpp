// The radix tree against semantics 5, worked out by hand. Page 16, W = 33: window_pages = ceil(32 /
// 16) = 2.
#include "tree/radix_tree.h"

#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "device/stepped.h"
#include "event_recorder.h"
#include "fake_timers.h"

namespace lockstep {
namespace {

constexpr RequestId kRequest{1};
constexpr PageHash kSpace{};

PageHash hash_of(int page) {
  PageHash hash;
  hash.bytes[0] = static_cast<std::byte>(page + 1);
  return hash;
}

Geometry geometry() {
  Geometry g;
  g.page = Tokens{16};
  g.window = Tokens{33};
  g.has_swa = g.has_mamba = true;
  return g;
}

std::vector<PoolSpec> pools() {
  std::vector<PoolSpec> specs;
  const auto add = [&](Component component, Part part, std::int64_t rows) {
    specs.push_back({{component, {{LayerId{0}, part, Bytes{0}, Bytes{8}}}, Bytes{8}},
                     component == Component::mamba ? Tokens{1} : Tokens{16},
                     Rows{rows}});
  };
  add(Component::full, Part::kv, 32);
  add(Component::swa, Part::kv, 32);
  add(Component::mamba, Part::temporal, 8);
  return specs;
}

struct Bench {
  testing::FakeTimers timers;
  SteppedDevice device{timers, CostModel{}};
  testing::EventRecorder events;
  PoolGroup group{device, events, RankId{0}, pools()};
  RadixTree tree{geometry(),
                 group,
                 events,
                 RankId{0},
                 std::make_unique<EvictionPolicy>(),
                 std::make_unique<NodeSplitter>()};

  std::vector<Row> take(Component component, std::size_t count) {
    return group.pool(component)
        .allocate(kRequest, Rows{static_cast<std::int64_t>(count)}, Purpose::forward)
        ->disown();
  }
  Rows free(Component component) { return group.pool(component).free(); }

  // INSERT of the pages named `pages`, all with FULL rows, SWA rows from page `swa_from` on, and a
  // state.
  InsertOutcome insert(const std::vector<int>& pages, std::size_t swa_from,
                       bool with_state = true) {
    std::vector<PageHash> hashes;
    for (int page : pages) hashes.push_back(hash_of(page));
    const std::vector<Row> full = take(Component::full, pages.size());
    const std::vector<Row> swa = take(Component::swa, pages.size() - swa_from);
    IncomingRows incoming;
    incoming.hashes = hashes;
    incoming.full = full;
    incoming.swa_from = Pages{static_cast<std::int64_t>(swa_from)};
    incoming.swa = swa;
    if (with_state) incoming.state = take(Component::mamba, 1).front();
    InsertOutcome outcome = tree.insert(kSpace, incoming, std::nullopt);
    tree.free_duplicates(outcome);
    if (outcome.mamba_exist) group.pool(Component::mamba).release({&incoming.state, 1});
    return outcome;
  }
  TreePath walk(const std::vector<int>& pages) {
    std::vector<PageHash> hashes;
    for (int page : pages) hashes.push_back(hash_of(page));
    return tree.walk(kSpace, hashes);
  }
};

PageRange range(int begin, int end) {
  return {Pages{begin}, Pages{end}};
}

TEST_CASE("a first insert is adopted whole") {
  Bench bench;
  const InsertOutcome outcome = bench.insert({0, 1, 2}, 1);
  REQUIRE(outcome.full_adopted == std::vector{range(0, 3)});
  REQUIRE(outcome.full_duplicate.empty());
  REQUIRE(outcome.swa_adopted == std::vector{range(1, 3)});
  REQUIRE(outcome.state_adopted);
  REQUIRE(outcome.node->end() == Pages{3});
  REQUIRE(outcome.node->swa[0] == kTrapRow);
}

TEST_CASE(
    "what the tree has is a duplicate, what it lacks is adopted, FULL and SWA each by itself") {
  Bench bench;
  bench.insert({0, 1, 2}, 2);
  // FULL 0 to 2 are there; SWA 0 and 1 are tombstones, 2 is there.
  const InsertOutcome outcome = bench.insert({0, 1, 2}, 0);
  REQUIRE(outcome.full_duplicate == std::vector{range(0, 3)});
  REQUIRE(outcome.full_adopted.empty());
  REQUIRE(outcome.swa_adopted == std::vector{range(0, 2)});
  REQUIRE(outcome.swa_duplicate == std::vector{range(2, 3)});
  REQUIRE(outcome.mamba_exist);
  REQUIRE_FALSE(outcome.state_adopted);
  // Three FULL rows, three SWA rows and one state are in the tree; every duplicate went back.
  REQUIRE(bench.free(Component::full) == Rows{29});
  REQUIRE(bench.free(Component::swa) == Rows{29});
  REQUIRE(bench.free(Component::mamba) == Rows{7});
}

TEST_CASE("a boundary inside a node splits it; the state stays below") {
  Bench bench;
  const NodeId whole = bench.insert({0, 1, 2, 3}, 0).node->id;
  const InsertOutcome outcome = bench.insert({0, 1}, 0);
  REQUIRE(outcome.node->end() == Pages{2});
  REQUIRE(outcome.node->id != whole);
  REQUIRE(outcome.state_adopted);
  const TreePath path = bench.walk({0, 1, 2, 3});
  REQUIRE(path.nodes.size() == 2);
  REQUIRE(path.nodes[1]->id == whole);
  REQUIRE(path.nodes[1]->begin == Pages{2});
  REQUIRE(path.nodes[1]->has_state());
}

TEST_CASE("a split copies locks: the upper part keeps FULL and SWA counts and has no MAMBA lock") {
  Bench bench;
  Node& node = *bench.insert({0, 1, 2, 3}, 0).node;
  LockTicket ticket =
      bench.tree.lock(kRequest, node, LockHolder::request, bench.tree.window_of(node));
  Node& upper = bench.tree.node_at(bench.walk({0, 1, 2}), Pages{3});
  // window_pages = 2: pages 2 and 3 are locked, one on each side of the split.
  REQUIRE(upper.full_locks == 1);
  REQUIRE(upper.swa_locks == std::vector<std::uint32_t>{0, 0, 1});
  REQUIRE(upper.state_locks == 0);
  REQUIRE(node.swa_locks == std::vector<std::uint32_t>{1});
  REQUIRE(node.state_locks == 1);
  ticket.release();
  // Without a state and with a child the upper part stays, unlocked.
  REQUIRE(upper.full_locks == 0);
  REQUIRE(upper.swa_locks == std::vector<std::uint32_t>{0, 0, 0});
  REQUIRE(node.state_locks == 0);
}

TEST_CASE("FULL goes leaf by leaf, least recently used first, and never a locked one") {
  Bench bench;
  Node& first = *bench.insert({0, 1}, 0).node;
  bench.insert({0, 1, 2}, 0);
  bench.insert({0, 1, 3}, 0);
  bench.tree.touch_hit(*bench.walk({0, 1, 2}).nodes.back());
  REQUIRE(bench.tree.evict(Component::full, Rows{1}, EvictionCause::asked) == Rows{1});
  REQUIRE(bench.walk({0, 1, 3}).matched == Pages{2});
  REQUIRE(bench.walk({0, 1, 2}).matched == Pages{3});
  const LockTicket ticket = bench.tree.lock(kRequest, first, LockHolder::request, range(0, 2));
  // The last leaf goes; what remains is locked.
  REQUIRE(bench.tree.evict(Component::full, Rows{9}, EvictionCause::asked) == Rows{1});
  REQUIRE(bench.walk({0, 1}).matched == Pages{2});
}

TEST_CASE("eviction stops at the first node that covers the shortfall; a leaf goes whole") {
  Bench bench;
  bench.insert({0, 1, 2}, 0);
  bench.insert({5, 6}, 0);
  REQUIRE(bench.tree.evict(Component::full, Rows{1}, EvictionCause::asked) == Rows{3});
  REQUIRE(bench.walk({5, 6}).matched == Pages{2});
}

TEST_CASE("MAMBA: an inner node loses its state only, a leaf goes whole") {
  Bench bench;
  bench.insert({0, 1}, 0);
  bench.insert({0, 1, 2}, 0);
  REQUIRE(bench.tree.evict(Component::mamba, Rows{1}, EvictionCause::asked) == Rows{1});
  REQUIRE(bench.walk({0, 1, 2}).matched == Pages{3});
  REQUIRE_FALSE(bench.walk({0, 1}).nodes.front()->has_state());
  // The leaf goes with its pages, and then the node above it, left without children and without a
  // state.
  REQUIRE(bench.tree.evict(Component::mamba, Rows{1}, EvictionCause::asked) == Rows{1});
  REQUIRE(bench.walk({0, 1, 2}).matched == Pages{0});
  REQUIRE(bench.free(Component::full) == Rows{32});
}

TEST_CASE("SWA takes with it every state whose window held a page, also of descendants") {
  Bench bench;
  bench.insert({0, 1}, 0);
  bench.insert({0, 1, 2}, 0);     // window of 3: pages 1 and 2
  bench.insert({0, 1, 2, 3}, 0);  // window of 4: pages 2 and 3
  REQUIRE(bench.tree.evict(Component::swa, Rows{1}, EvictionCause::asked) == Rows{2});
  const TreePath path = bench.walk({0, 1, 2, 3});
  REQUIRE(path.nodes.size() == 3);
  REQUIRE_FALSE(path.nodes[0]->has_state());
  REQUIRE_FALSE(path.nodes[1]->has_state());
  REQUIRE(path.nodes[2]->has_state());
}

TEST_CASE("a locked state keeps its window, also when its holder reads the state only") {
  Bench bench;
  Node& node = *bench.insert({0, 1, 2}, 0).node;
  const LockTicket ticket =
      bench.tree.lock(kRequest, node, LockHolder::offload, {node.end(), node.end()});
  // Page 0 lies below the window [1, 3) and is all that may go.
  REQUIRE(bench.tree.evict(Component::swa, Rows{3}, EvictionCause::asked) == Rows{1});
  REQUIRE(node.has_state());
}

TEST_CASE("a node left without a state and without children goes when its last lock goes") {
  Bench bench;
  Node& node = *bench.insert({0, 1}, 0, false).node;
  LockTicket ticket = bench.tree.lock(kRequest, node, LockHolder::request, range(0, 2));
  REQUIRE(bench.walk({0, 1}).matched == Pages{2});
  ticket.release();
  REQUIRE(bench.walk({0, 1}).matched == Pages{0});
  REQUIRE(bench.free(Component::full) == Rows{32});
  REQUIRE(bench.free(Component::swa) == Rows{32});
}

TEST_CASE("a walk of less than a page creates no node, and namespaces do not meet") {
  Bench bench;
  REQUIRE(bench.walk({}).nodes.empty());
  bench.insert({0, 1}, 0);
  PageHash other;
  other.bytes[5] = std::byte{1};
  const std::vector<PageHash> hashes{hash_of(0), hash_of(1)};
  REQUIRE(bench.tree.walk(other, hashes).matched == Pages{0});
}

TEST_CASE("clear gives every row back") {
  Bench bench;
  bench.insert({0, 1}, 0);
  bench.insert({0, 1, 2}, 0);
  bench.insert({7}, 0);
  bench.tree.clear();
  REQUIRE(bench.free(Component::full) == Rows{32});
  REQUIRE(bench.free(Component::swa) == Rows{32});
  REQUIRE(bench.free(Component::mamba) == Rows{8});
  REQUIRE(bench.walk({0, 1}).matched == Pages{0});
}

}  // namespace
}  // namespace lockstep
