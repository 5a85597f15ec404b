#include "sim/defects/finish_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class UnfedToken : public CheckpointTracker {
 public:
  using CheckpointTracker::CheckpointTracker;

  Tokens insertable(Tokens fed) const override { return fed + Tokens{1}; }
};

constexpr std::array kFinishDefects{
    Defect{"finish.unfed_token", "C01 C23", "B4", "", "the last generated token counts as fed",
           make<WithCheckpointTracker<UnfedToken>>},
};

}  // namespace

std::span<const Defect> finish_defects() {
  return kFinishDefects;
}

}  // namespace lockstep::sim::defects
