#include "sim/defects/lookup_defects.h"

#include <algorithm>
#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class LongestOnly : public LookupPhase {
 public:
  using LookupPhase::LookupPhase;

 protected:
  std::vector<Pages> restorable(const TailPresence& tail) const override {
    const std::vector<Pages> all = LookupPhase::restorable(tail);
    return all.empty() ? all : std::vector{all.back()};
  }
};

class MinimumOfMaxima : public RankVote {
 public:
  Tokens combine(std::span<const std::vector<Tokens>> restorable,
                 Tokens device_hit) const override {
    Tokens least = restorable.front().empty() ? device_hit : restorable.front().back();
    for (const std::vector<Tokens>& rank : restorable) {
      least = std::min(least, rank.empty() ? device_hit : rank.back());
    }
    return least;
  }
};

class MaxOnlyParts : public WithLookupPhase<LongestOnly> {
 public:
  std::unique_ptr<RankVote> rank_vote() const override {
    return std::make_unique<MinimumOfMaxima>();
  }
};

class IgnoreState : public LookupPhase {
 public:
  using LookupPhase::LookupPhase;

 protected:
  std::vector<Pages> restorable(const TailPresence& tail) const override {
    TailPresence believed = tail;
    believed.state.assign(tail.full.size(), true);
    return LookupPhase::restorable(believed);
  }
};

class WindowAnywhere : public LookupPhase {
 public:
  using LookupPhase::LookupPhase;

 protected:
  std::vector<Pages> restorable(const TailPresence& tail) const override {
    const std::int64_t window = rank_.geometry.window_pages().value();
    std::vector<Pages> lengths;
    std::int64_t present = 0;
    for (std::size_t i = 0; i < tail.full.size() && tail.full[i]; ++i) {
      const auto length = static_cast<std::int64_t>(i) + 1;
      present += !tail.swa.empty() && tail.swa[i] ? 1 : 0;
      const bool enough = tail.swa.empty() || present >= std::min(window, length);
      const bool state = tail.state.empty() || tail.state[i];
      if (enough && state) lengths.push_back(Pages{length});
    }
    return lengths;
  }
};

class SumOfHits : public LookupPhase {
 public:
  using LookupPhase::LookupPhase;

 protected:
  std::vector<Pages> restorable(const TailPresence& tail) const override {
    TailPresence believed = tail;
    const auto present = std::ranges::count(tail.full, true);
    std::fill(believed.full.begin(), believed.full.begin() + present, true);
    std::fill(believed.full.begin() + present, believed.full.end(), false);
    return LookupPhase::restorable(believed);
  }
};

class NoAnchor : public LookupPhase {
 public:
  using LookupPhase::LookupPhase;

 protected:
  std::vector<PageHash> tail_hashes(const RequestState& request, std::span<const TokenId> tokens,
                                    Pages begin, Pages end) const override {
    const std::size_t first = rank_.geometry.tokens(begin).index();
    const std::size_t count = rank_.geometry.tokens(end - begin).index();
    return rank_.keys.page_hashes(request.namespace_hash, tokens.subspan(first, count));
  }
};

constexpr std::array kLookupDefects{
    Defect{"lookup.max_only", "C24", "B1", "",
           "a rank reports only its longest length; ranks take the minimum", make<MaxOnlyParts>},
    Defect{"lookup.ignore_state", "C02", "R1", "B1", "restorable = KV present",
           make<WithLookupPhase<IgnoreState>>},
    Defect{"lookup.window_anywhere", "C12", "R1", "B1", "SWA pages counted, not where they are",
           make<WithLookupPhase<WindowAnywhere>>},
    Defect{"lookup.sum_of_hits", "C09 C25", "R1", "B1", "counts present pages across a hole",
           make<WithLookupPhase<SumOfHits>>},
    Defect{"lookup.no_anchor", "C19", "R1", "", "the tail is hashed as if it began the sequence",
           make<WithLookupPhase<NoAnchor>>},
};

}  // namespace

std::span<const Defect> lookup_defects() {
  return kLookupDefects;
}

}  // namespace lockstep::sim::defects
