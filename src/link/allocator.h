// Rows on demand: from the free list, else after evicting the shortfall, else not at all (semantics
// 3, LOAD).
#pragma once

#include <optional>

#include "link/rank.h"

namespace lockstep {

// Where a simulator may refuse an allocation together with its retry.
class AllocationGate {
 public:
  virtual ~AllocationGate() = default;
  virtual bool refuses(RankId rank, RequestId request, Component component, Purpose purpose) = 0;
};

class RowAllocator {
 public:
  // `gate` may be null.
  RowAllocator(const Rank& rank, AllocationGate* gate) : rank_(rank), gate_(gate) {}
  virtual ~RowAllocator() = default;

  // Exactly `count` rows, or none. Exhaustion is an ordinary outcome and is reported.
  std::optional<OwnedRows> allocate(RequestId request, Component component, Rows count,
                                    Purpose purpose);
  // As many rows as can be had after eviction, up to `count`; perhaps none.
  OwnedRows allocate_up_to(RequestId request, Component component, Rows count, Purpose purpose);

 protected:
  virtual void exhausted(RequestId request, const AllocationFailed& failure);

 private:
  const Rank& rank_;
  AllocationGate* gate_;
};

}  // namespace lockstep
