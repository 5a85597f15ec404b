// Takes one restored thing away, each in turn, and says which invariants must notice.
//
// Producer: 128 tokens = 8 pages of 16, one checkpoint at 128 and, by the second chunk size, one at
// 112. After a flush the consumer (128 shared + 8) restores 128 tokens: 8 FULL pages, 4 SWA pages
// (W = 64), one state.
#include <algorithm>
#include <set>
#include <string>

#include "catch.h"
#include "core/random.h"
#include "sim/world.h"

namespace lockstep::sim {
namespace {

// Loads nothing for the transfers of one component; their rows keep the poison.
class LosesRows : public CommitPhase {
 public:
  LosesRows(const Rank& rank, const TransferPlanner& planner, LoadQueue& loads, Component lost)
      : CommitPhase(rank, planner, loads), lost_(lost) {}

 protected:
  std::vector<Transfer> keep_adopted(const RequestState& request, const InsertOutcome& inserted,
                                     Tokens boundary) const override {
    std::vector<Transfer> kept = CommitPhase::keep_adopted(request, inserted, boundary);
    for (Transfer& transfer : kept) {
      if (transfer.component != lost_) continue;
      // One row of several; the state is the only one of its kind.
      transfer.rows.pop_back();
      transfer.hashes.pop_back();
      if (lost_ != Component::mamba) transfer.pages.end -= Pages{1};
    }
    std::erase_if(kept, [](const Transfer& transfer) { return transfer.rows.empty(); });
    return kept;
  }

 private:
  Component lost_;
};

// Copies only one part of the checkpoint into the private slot.
class CopiesOnePart : public CowPhase {
 public:
  CopiesOnePart(const Rank& rank, LoadQueue& loads, Part kept)
      : CowPhase(rank, loads), kept_(kept) {}

 protected:
  void copy(const RequestState& request, std::span<const LayerPart> parts, bool last) override {
    std::vector<LayerPart> some;
    std::ranges::copy_if(parts, std::back_inserter(some),
                         [&](const LayerPart& part) { return part.part == kept_; });
    CowPhase::copy(request, some, last);
  }

 private:
  Part kept_;
};

// Continues from the checkpoint one page below the boundary.
class TakesEarlierState : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  Row choose_source(const RequestState& request, const Node& canonical) const override {
    for (const Node* node = canonical.parent; node != nullptr; node = node->parent) {
      if (node->has_state()) return node->state;
    }
    return CommitPhase::choose_source(request, canonical);
  }
};

struct LosesRowsParts : engine::Parts {
  explicit LosesRowsParts(Component component) : lost(component) {}
  std::unique_ptr<CommitPhase> commit_phase(const Rank& rank, const TransferPlanner& planner,
                                            LoadQueue& loads) const override {
    return std::make_unique<LosesRows>(rank, planner, loads, lost);
  }
  Component lost;
};

struct CopiesOnePartParts : engine::Parts {
  explicit CopiesOnePartParts(Part part) : kept(part) {}
  std::unique_ptr<CowPhase> cow_phase(const Rank& rank, LoadQueue& loads) const override {
    return std::make_unique<CopiesOnePart>(rank, loads, kept);
  }
  Part kept;
};

struct TakesEarlierStateParts : engine::Parts {
  std::unique_ptr<CommitPhase> commit_phase(const Rank& rank, const TransferPlanner& planner,
                                            LoadQueue& loads) const override {
    return std::make_unique<TakesEarlierState>(rank, planner, loads);
  }
};

std::vector<TokenId> random_tokens(std::size_t count, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens;
  while (tokens.size() < count) {
    tokens.emplace_back(static_cast<std::uint32_t>(1 + random.below(65535)));
  }
  return tokens;
}

// `flush`: the second turn restores from the store; otherwise it is a device hit.
std::set<std::string> violated(std::unique_ptr<engine::Parts> parts, bool flush) {
  WorldConfig config;
  config.cache.page = Tokens{16};
  config.cache.track_interval = Tokens{16};
  config.cache.prefill_chunk = Tokens{112};
  config.parts = std::move(parts);
  auto world = World::make(std::move(config));
  REQUIRE(world.ok());
  std::vector<TokenId> prompt = random_tokens(128, 1);
  (*world)->submit("producer", {prompt, Tokens{1}, {}});
  while ((*world)->advance()) {
  }
  if (flush) (*world)->engine().flush();
  const std::vector<TokenId> more = random_tokens(8, 2);
  prompt.insert(prompt.end(), more.begin(), more.end());
  (*world)->submit("consumer", {prompt, Tokens{4}, {}});
  while ((*world)->advance()) {
  }
  const RunResult result = (*world)->finish("restored things");
  REQUIRE(result.requests.at("consumer").restored_tokens == Tokens{128});
  std::set<std::string> names;
  for (const oracle::Violation& violation : result.violations) names.insert(violation.invariant);
  return names;
}

TEST_CASE("nothing is taken away, nothing is reported") {
  REQUIRE(violated(std::make_unique<engine::Parts>(), true).empty());
  REQUIRE(violated(std::make_unique<engine::Parts>(), false).empty());
}

TEST_CASE("a FULL page that was not restored is reported") {
  REQUIRE(violated(std::make_unique<LosesRowsParts>(Component::full), true).contains("D1"));
}

TEST_CASE("an SWA page that was not restored is reported") {
  REQUIRE(violated(std::make_unique<LosesRowsParts>(Component::swa), true).contains("D1"));
}

TEST_CASE("a state that was not restored is reported") {
  REQUIRE(violated(std::make_unique<LosesRowsParts>(Component::mamba), true).contains("D1"));
}

TEST_CASE("a temporal part that was not copied is reported") {
  REQUIRE(violated(std::make_unique<CopiesOnePartParts>(Part::conv), true).contains("D1"));
}

TEST_CASE("a conv part that was not copied is reported") {
  REQUIRE(violated(std::make_unique<CopiesOnePartParts>(Part::temporal), true).contains("D1"));
}

TEST_CASE("the state of one page earlier is reported, by boundary and by content") {
  const std::set<std::string> names = violated(std::make_unique<TakesEarlierStateParts>(), false);
  REQUIRE(names.contains("B6"));
  REQUIRE(names.contains("D1"));
}

}  // namespace
}  // namespace lockstep::sim
