#include "sim/defects/reset_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

// Nothing tells what was queued before a flush from what was queued after it, so that nobody waits.
class NoEpoch : public Linker {
 public:
  using Linker::Linker;

  bool transfers_pending() const override { return false; }
};

constexpr std::array kDefects{
    Defect{"reset.no_epoch", "C18", "C1", "S1", "a completion of an old epoch is applied",
           make<WithLinker<NoEpoch>>},
};

}  // namespace

std::span<const Defect> reset_defects() {
  return kDefects;
}

}  // namespace lockstep::sim::defects
