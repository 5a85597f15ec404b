#include "sim/defects/reset_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

// A flush does not wait for puts: nothing tells those queued before it from those queued after it.
class NoEpoch : public Linker {
 public:
  using Linker::Linker;

  bool transfers_pending() const override { return oldest_load().has_value(); }
};

// A flush does not wait for loads: what they have locked goes while they run.
class UnlockFirst : public Linker {
 public:
  using Linker::Linker;

  bool transfers_pending() const override { return Linker::transfers_pending() && !oldest_load(); }
};

constexpr std::array kResetDefects{
    Defect{"reset.no_epoch", "C18", "C1", "S1", "a completion of an old epoch is applied",
           make<WithLinker<NoEpoch>>},
    Defect{"reset.unlock_first", "C18", "H1", "", "locks are released before transfers stop",
           make<WithLinker<UnlockFirst>>},
};

}  // namespace

std::span<const Defect> reset_defects() {
  return kResetDefects;
}

}  // namespace lockstep::sim::defects
