// A put that starts before the forward that writes its rows. The engine takes results only after it
// has seen the forward's end, so no engine run shows this wait missing: here a forward is queued
// and its rows are offloaded at once.
#include <array>
#include <cstring>

#include "catch.h"
#include "event_recorder.h"
#include "link/offload.h"
#include "sim/event_loop.h"
#include "sim/race_detector.h"
#include "store/memory_store.h"

namespace lockstep::sim {
namespace {

constexpr LayerId kLayer{0};

std::vector<PoolSpec> one_pool() {
  const RowLayout layout{Component::full, {{kLayer, Part::kv, Bytes{0}, Bytes{8}}}, Bytes{8}};
  return {{layout, Tokens{1}, Rows{4}}};
}

class NotBehindWriters : public OffloadQueue {
 public:
  using OffloadQueue::OffloadQueue;

 protected:
  void order_behind_writers() override {}
};

struct Bench {
  EventLoop loop;
  testing::EventRecorder sink;
  std::vector<Race> races;
  RaceDetector detector{one_pool(), [this](const Race& race) { races.push_back(race); }};
  SteppedDevice device{loop, CostModel{}, {.listener = &detector}};
  MemoryStore store{loop, sink, {}};
  Geometry geometry;
  PoolGroup pools{device, sink, RankId{0}, one_pool()};
  KeyScheme keys{Tokens{1}, RankId{0}, 1};
  RadixTree tree{geometry,
                 pools,
                 sink,
                 RankId{0},
                 std::make_unique<EvictionPolicy>(),
                 std::make_unique<NodeSplitter>()};
  Rank rank{RankId{0}, geometry, {}, device, pools, tree, store, keys, sink};

  void run() {
    while (!loop.empty()) loop.run_next();
  }
};

// A forward writes `value` into a page of the tree, and the page is offloaded. Returns what the
// store then holds.
std::uint64_t write_and_offload(Bench& bench, OffloadQueue& queue, std::uint64_t value) {
  RowPool& pool = bench.pools.pool(Component::full);
  std::vector<Row> rows = pool.allocate(RequestId{1}, Rows{1}, Purpose::forward)->disown();
  const std::vector<PageHash> hashes =
      bench.keys.page_hashes(bench.keys.namespace_hash({}), std::array{TokenId{5}});
  IncomingRows incoming;
  incoming.hashes = hashes;
  incoming.full = rows;
  Node& node = *bench.tree.insert(PageHash{}, incoming, std::nullopt).node;

  Op forward{.name = "forward.layer", .link = Link::none};
  forward.body = [&pool, row = rows.front(), value] {
    std::memcpy(pool.bytes(row).data(), &value, sizeof value);
  };
  forward.accesses = [row = rows.front()](const AccessSink& sink) {
    sink({Component::full, row, kLayer, Part::kv, AccessMode::write});
  };
  bench.device.enqueue(StreamKind::compute, std::move(forward));
  const TransferPlanner planner;
  Transfer page = planner.pages(Component::full, hashes, {Pages{0}, Pages{1}}, rows);
  const OffloadId id = queue.next_id();
  queue.queue(id, node, {std::move(page)}, std::nullopt);
  bench.run();
  queue.pump();
  REQUIRE(queue.oldest_finished());
  queue.settle(id, true);

  std::uint64_t stored = 0;
  const std::string key = bench.keys.object_key(hashes.front(), Component::full);
  bench.store.get({{key, Bytes{0}, std::as_writable_bytes(std::span(&stored, 1))}});
  bench.run();
  return stored;
}

TEST_CASE("an offload that waits for the forward races with nothing") {
  Bench bench;
  OffloadQueue queue(bench.rank);
  REQUIRE(write_and_offload(bench, queue, 0x1234) == 0x1234);
  REQUIRE(bench.races.empty());
}

TEST_CASE("H1: a put that does not wait for the forward that writes the row") {
  Bench bench;
  NotBehindWriters queue(bench.rank);
  // The forward happens to be over when the copy runs: the bytes are right.
  REQUIRE(write_and_offload(bench, queue, 0x1234) == 0x1234);
  REQUIRE(bench.races.size() == 1);
  const Race& race = bench.races.front();
  REQUIRE(race.earlier.operation == "forward.layer");
  REQUIRE(race.later.operation == "offload.copy");
  REQUIRE(race.component == Component::full);
  REQUIRE(race.row == Row{1});
}

}  // namespace
}  // namespace lockstep::sim
