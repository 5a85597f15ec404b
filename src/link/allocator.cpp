#include "link/allocator.h"

#include <algorithm>

namespace lockstep {

std::optional<OwnedRows> RowAllocator::allocate(RequestId request, Component component, Rows count,
                                                Purpose purpose) {
  RowPool& pool = rank_.pools.pool(component);
  const bool refused = gate_ != nullptr && gate_->refuses(rank_.id, request, component, purpose);
  // A refused allocation evicts too, as its retry would have: the other ranks do, and trees must
  // agree.
  if (pool.free() < count) {
    rank_.tree.evict(component, count - pool.free(), EvictionCause::pressure);
  }
  if (!refused) {
    if (auto rows = pool.allocate(request, count, purpose)) return rows;
  }
  exhausted(request,
            {component, purpose, count, pool.free(), rank_.tree.evictable(component), refused});
  return std::nullopt;
}

OwnedRows RowAllocator::allocate_up_to(RequestId request, Component component, Rows count,
                                       Purpose purpose) {
  RowPool& pool = rank_.pools.pool(component);
  const bool refused = gate_ != nullptr && gate_->refuses(rank_.id, request, component, purpose);
  if (pool.free() < count) {
    rank_.tree.evict(component, count - pool.free(), EvictionCause::pressure);
  }
  if (refused) {
    exhausted(request,
              {component, purpose, count, pool.free(), rank_.tree.evictable(component), true});
    return {};
  }
  const Rows granted = std::min(count, pool.free());
  if (granted < count) {
    exhausted(request, {component, purpose, count, pool.free(), Rows{0}, false});
  }
  if (granted == Rows{0}) return {};
  return std::move(*pool.allocate(request, granted, purpose));
}

void RowAllocator::exhausted(RequestId request, const AllocationFailed& failure) {
  rank_.emit(request, failure);
}

}  // namespace lockstep
