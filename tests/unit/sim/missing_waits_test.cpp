// A wait is left out by a planted defect, one at a time. H1 must be reported under every schedule,
// also under one in which the bytes happen to be right, where no other judge sees anything.
#include <algorithm>
#include <set>
#include <string>

#include "catch.h"
#include "core/random.h"
#include "sim/defects/registry.h"
#include "sim/world.h"

namespace lockstep::sim {
namespace {

std::vector<TokenId> random_tokens(std::size_t count, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens;
  while (tokens.size() < count) {
    tokens.emplace_back(static_cast<std::uint32_t>(1 + random.below(65535)));
  }
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> head, const std::vector<TokenId>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

// What one run found: invariants, and the operations that raced.
struct Found {
  std::set<std::string> invariants;
  std::string races;
};

Found found(const RunResult& result) {
  Found found;
  for (const oracle::Violation& violation : result.violations) {
    found.invariants.insert(violation.invariant);
    if (violation.invariant == "H1") found.races += violation.expected + "\n";
  }
  return found;
}

// A story told to a world with pages of 16 and the given parts, under schedule `seed` of a mode.
struct Story {
  std::unique_ptr<World> world;

  Story(std::unique_ptr<engine::Parts> parts, ScheduleMode mode, std::uint64_t seed,
        Rows full_pages = Rows{96}) {
    WorldConfig config;
    config.cache.page = Tokens{16};
    config.cache.track_interval = Tokens{16};
    config.cache.full_pages = full_pages;
    config.cache.max_running = 2;
    config.schedule = {.mode = mode, .depth = 1};
    config.seed = seed;
    config.parts = std::move(parts);
    auto made = World::make(std::move(config));
    REQUIRE(made.ok());
    world = std::move(*made);
  }
  void submit(const std::string& name, std::vector<TokenId> prompt, std::int64_t decode = 1) const {
    world->submit(name, {std::move(prompt), Tokens{decode}, {}});
  }
  void run() const {
    while (world->advance()) {
    }
  }
  Found end() const { return found(world->finish("missing wait")); }
};

// Runs `tell` under fifo and under fixed priorities with several seeds. Each run must report H1
// between the two operations, and at least one run must report nothing else.
template <class Tell>
void reports_a_race(const std::string& defect, Tell tell, const std::string& one,
                    const std::string& other, Rows full_pages = Rows{96}) {
  bool lucky = false;
  for (ScheduleMode mode : {ScheduleMode::fifo, ScheduleMode::priority, ScheduleMode::random}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Story sound(std::make_unique<engine::Parts>(), mode, seed, full_pages);
      tell(sound);
      REQUIRE(sound.end().invariants.empty());
      const Story broken(make_parts(std::vector{defect}).value(), mode, seed, full_pages);
      tell(broken);
      const Found result = broken.end();
      CAPTURE(mode, seed, result.races);
      REQUIRE(result.invariants.contains("H1"));
      REQUIRE(result.races.find(one) != std::string::npos);
      REQUIRE(result.races.find(other) != std::string::npos);
      lucky = lucky || result.invariants == std::set<std::string>{"H1"};
    }
  }
  REQUIRE(lucky);
}

// The consumer restores eight pages of 16, four window pages and a state from the store.
void restore(const Story& story) {
  const std::vector<TokenId> shared = random_tokens(128, 1);
  story.submit("producer", shared);
  story.run();
  story.world->engine().flush();
  story.submit("consumer", joined(shared, random_tokens(8, 2)), 2);
  story.run();
}

// Two consumers of one boundary: the first loads it, the second finds only duplicates and reads
// what the first one's load brings. The first is held meanwhile: in one forward with it, the
// second's copy would come behind the first's waits.
void restore_and_share(const Story& story) {
  const std::vector<TokenId> shared = random_tokens(128, 1);
  story.submit("producer", shared);
  story.run();
  story.world->engine().flush();
  story.submit("first", joined(shared, random_tokens(8, 2)), 2);
  story.submit("second", joined(shared, random_tokens(8, 3)), 2);
  engine::Engine& engine = story.world->engine();
  const RequestId first = *story.world->find("first");
  engine.hold(first, engine::Point::committed);
  story.run();
  engine.release(first);
  story.run();
}

// Two loads of one batch: of different prompts, with tails of different sizes.
void restore_two(const Story& story) {
  const std::vector<TokenId> small = random_tokens(32, 1);
  const std::vector<TokenId> large = random_tokens(256, 4);
  story.submit("small producer", small);
  story.submit("large producer", large);
  story.run();
  story.world->engine().flush();
  story.submit("small", joined(small, random_tokens(8, 2)), 2);
  story.submit("large", joined(large, random_tokens(8, 3)), 2);
  story.run();
}

// Twelve pages: the load of eight evicts some of the eight that another prompt has left.
void restore_into_evicted(const Story& story) {
  const std::vector<TokenId> shared = random_tokens(128, 1);
  story.submit("producer", shared);
  story.run();
  story.world->engine().flush();
  story.submit("other", random_tokens(128, 4));
  story.run();
  story.submit("consumer", joined(shared, random_tokens(8, 2)), 2);
  story.run();
}

TEST_CASE("H1: the copy does not wait for the load that fills its source") {
  reports_a_race("cow.no_wait", restore, "load.layer", "cow.copy");
}

TEST_CASE("H1: the copy waits for the request's own load only") {
  reports_a_race("cow.own_load_only", restore_and_share, "load.layer", "cow.copy");
}

TEST_CASE("H1: a layer is signalled before its bytes are in the rows") {
  reports_a_race("load.event_before_bytes", restore, "load.layer", "forward.layer");
}

TEST_CASE("H1: a batch is complete when its first load is") {
  reports_a_race("load.first_done_is_done", restore_two, "load.layer", "forward.layer");
}

TEST_CASE("H1: a load is not fenced behind the last use of the rows that it fills") {
  reports_a_race("load.overwrites_reader", restore_into_evicted, "pool.poison", "load.layer",
                 Rows{12});
}

}  // namespace
}  // namespace lockstep::sim
