#include "sim/defects/ranks_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

// Rank r's clock has ticks of 4 r + 1 uses: what falls into one tick is taken in order of node ids.
class LocalClock : public EvictionPolicy {
 public:
  explicit LocalClock(RankId rank) : uses_per_tick_(4 * rank.value() + 1) {}

  std::uint64_t stamp(std::uint64_t now) const override {
    return (now / uses_per_tick_ + 1) * uses_per_tick_;
  }

 private:
  std::uint64_t uses_per_tick_;
};

class LocalClockParts : public engine::Parts {
 public:
  std::unique_ptr<EvictionPolicy> eviction_policy(RankId rank) const override {
    return std::make_unique<LocalClock>(rank);
  }
};

// A rank settles its puts as they complete, whatever the others have.
class UnevenDrain : public Linker {
 public:
  using Linker::Linker;

  void pump() override {
    Linker::pump();
    while (const auto finished = oldest_finished_offload()) {
      settle_offload(finished->id, finished->good);
    }
  }
};

constexpr std::array kRanksDefects{
    Defect{"ranks.local_clock", "C24", "K1", "", "eviction order from each rank's own clock",
           make<LocalClockParts>},
    Defect{"ranks.uneven_drain", "C24", "K1", "L1", "ranks consume different completion counts",
           make<WithLinker<UnevenDrain>>},
};

}  // namespace

std::span<const Defect> ranks_defects() {
  return kRanksDefects;
}

}  // namespace lockstep::sim::defects
