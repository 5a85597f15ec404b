// What OFFLOAD puts, LOAD brings back: byte for byte, for every component, rank, page size and
// order of layers. The rows are read from the pools themselves.
#include <map>

#include <rapidcheck.h>

#include "catch.h"
#include "engine/parts.h"
#include "property.h"
#include "sim/world.h"

namespace lockstep {
namespace {

using Bytes = std::vector<std::byte>;
using RankList = std::map<RankId, const Rank*>;

// Our own linker; remembers where each rank's pools and tree are.
class OpenParts : public engine::Parts {
 public:
  explicit OpenParts(RankList& ranks) : ranks_(ranks) {}
  std::unique_ptr<MatchPhase> match_phase(const Rank& rank) const override {
    ranks_[rank.id] = &rank;
    return Parts::match_phase(rank);
  }

 private:
  RankList& ranks_;
};

// Keeps the bytes of all rows of the trees, and compares what loads bring with them.
class Comparison : public Observer {
 public:
  explicit Comparison(const RankList& ranks) : ranks_(ranks) {}

  void save() {
    for (const auto& [id, rank] : ranks_) {
      rank->tree.for_each_node([&, id = id, rank = rank](Node& node) {
        for (std::size_t i = 0; i < node.hashes.size(); ++i) {
          save(*rank, id, Component::full, node.full[i], node.hashes[i]);
          if (!node.swa.empty()) save(*rank, id, Component::swa, node.swa[i], node.hashes[i]);
        }
        save(*rank, id, Component::mamba, node.state, node.last_hash());
      });
    }
  }

  void on_event(const Event& event) override {
    if (const auto* queued = std::get_if<LoadQueued>(&event.body)) {
      for (const TransferView& transfer : queued->transfers) {
        for (std::size_t i = 0; i < transfer.rows.size(); ++i) {
          loading_[{event.rank, queued->load}].push_back(
              {transfer.component, transfer.rows[i], transfer.hashes[i]});
        }
      }
    } else if (const auto* finished = std::get_if<LoadFinished>(&event.body)) {
      for (const Loaded& loaded : loading_[{event.rank, finished->load}]) {
        compare(event.rank, loaded, finished->good);
      }
    }
  }

  int same() const { return same_; }
  int different() const { return different_; }

 private:
  struct Loaded {
    Component component;
    Row row;
    PageHash hash;
  };
  using Name = std::tuple<RankId, Component, PageHash>;

  static Bytes bytes(const Rank& rank, Component component, Row row) {
    const std::span<std::byte> found = rank.pools.pool(component).bytes(row);
    return {found.begin(), found.end()};
  }
  void save(const Rank& rank, RankId id, Component component, Row row, const PageHash& hash) {
    if (row != kTrapRow) saved_[{id, component, hash}] = bytes(rank, component, row);
  }
  void compare(RankId rank, const Loaded& loaded, bool good) {
    const auto saved = saved_.find({rank, loaded.component, loaded.hash});
    const bool equal = good && saved != saved_.end() &&
                       saved->second == bytes(*ranks_.at(rank), loaded.component, loaded.row);
    ++(equal ? same_ : different_);
  }

  const RankList& ranks_;
  std::map<Name, Bytes> saved_;
  std::map<std::pair<RankId, LoadId>, std::vector<Loaded>> loading_;
  int same_ = 0;
  int different_ = 0;
};

sim::WorldConfig draw_config() {
  sim::WorldConfig config;
  const bool numeric = *rc::gen::inRange(0, 8) == 0;
  config.model.preset = numeric ? "inkling-pico" : "fingerprint";
  const auto page = *rc::gen::inRange<std::int64_t>(1, 9);
  config.cache.page = Tokens{page};
  config.cache.track_interval = Tokens{page};
  config.cache.prefill_chunk = Tokens{*rc::gen::inRange<std::int64_t>(1, 4 * page + 1)};
  config.cache.full_pages = config.cache.swa_pages = config.cache.mamba_slots = Rows{128};
  config.model.window = Tokens{*rc::gen::inRange<std::int64_t>(1, 3 * page + 3)};
  config.model.state_chunk = Tokens{page};
  config.ranks = *rc::gen::inRange<std::int64_t>(1, 3);
  if (*rc::gen::arbitrary<bool>()) config.cache.overlap = OverlapPolicy::barrier;
  if (*rc::gen::arbitrary<bool>()) config.cache.publish = PublishPolicy::after_load;
  if (*rc::gen::arbitrary<bool>()) config.cache.object_order = ObjectOrder::descending;
  config.seed = *rc::gen::inRange<std::uint64_t>(1, 1000);
  return config;
}

engine::Submission one_token_after(std::vector<TokenId> prompt) {
  engine::Submission submission;
  submission.prompt = std::move(prompt);
  submission.decode = Tokens{1};
  return submission;
}

std::vector<TokenId> draw_tokens(std::uint32_t vocab) {
  const auto size = *rc::gen::inRange<std::size_t>(2, 40);
  SplitMix64 stream(*rc::gen::inRange<std::uint64_t>(0, 1000));
  std::vector<TokenId> tokens;
  while (tokens.size() < size) {
    tokens.emplace_back(static_cast<std::uint32_t>(stream.below(vocab)));
  }
  return tokens;
}

}  // namespace

TEST_CASE("offload and load round trip") {
  int same = 0;
  testing::require_property("offload and load round trip", 200, [&] {
    RankList ranks;
    Comparison comparison(ranks);
    sim::WorldConfig config = draw_config();
    config.parts = std::make_unique<OpenParts>(ranks);
    config.observer = &comparison;
    auto world = sim::World::make(std::move(config));
    RC_ASSERT(world.ok());
    std::vector<TokenId> tokens =
        draw_tokens(static_cast<std::uint32_t>((*world)->model().vocab()));
    const auto let_end = [&] {
      while ((*world)->advance()) {
      }
    };
    (*world)->submit("put", one_token_after(tokens));
    let_end();
    comparison.save();
    (*world)->engine().flush();
    tokens.push_back(TokenId{1});
    (*world)->submit("get", one_token_after(tokens));
    let_end();
    same += comparison.same();
    RC_ASSERT(comparison.different() == 0);
  });
  REQUIRE(same > 700);
}

}  // namespace lockstep
