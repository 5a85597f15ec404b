#include "sim/defects/pool_defects.h"

#include <array>

#include "core/check.h"
#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class DirtySlot : public CowPhase {
 public:
  using CowPhase::CowPhase;

 protected:
  void clear_slot(const RequestState&, const std::function<void(std::span<std::byte>)>&) override {}
};

class Asserts : public RowAllocator {
 public:
  using RowAllocator::RowAllocator;

 protected:
  void exhausted(RequestId request, const AllocationFailed& failure) override {
    RowAllocator::exhausted(request, failure);
    CHECK("pool.never_exhausted", failure.injected);
  }
};

constexpr std::array kPoolDefects{
    Defect{"pool.dirty_slot", "C26", "D1", "", "a new slot is not cleared",
           make<WithCowPhase<DirtySlot>>},
    Defect{"pool.asserts", "C16", "L2", "", "exhaustion is fatal", make<WithRowAllocator<Asserts>>},
};

}  // namespace

std::span<const Defect> pool_defects() {
  return kPoolDefects;
}

}  // namespace lockstep::sim::defects
