// LOAD and ABORT: take every row that the tail needs, or none (semantics 3, 4).
#pragma once

#include "link/allocator.h"
#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

class LoadPhase {
 public:
  LoadPhase(const Rank& rank, RowAllocator& allocator) : rank_(rank), allocator_(allocator) {}
  virtual ~LoadPhase() = default;

  // Takes FULL rows of [device hit, boundary), SWA rows of its trailing window, the slot T, and
  // makes sure of Q. On false everything taken has been given back in reverse order: an ordinary
  // miss.
  bool run(RequestState& request, Tokens boundary);
  // Gives back what run() took, in reverse order. The request keeps Q.
  virtual void abort(RequestState& request);

  // A request that resumes at its device hit needs Q only. False: none can be had.
  bool secure_private_slot(RequestState& request);

 protected:
  // COMMIT cannot fail: Q is there, or free, or will be T's slot because the boundary has a state
  // already.
  virtual bool private_slot_is_sure(RequestState& request, Pages boundary);

 private:
  bool take(RequestState& request, Component component, Rows count, Purpose purpose,
            OwnedRows& into);
  void give_back(RequestState& request, Component component, OwnedRows& rows);

  const Rank& rank_;
  RowAllocator& allocator_;
};

}  // namespace lockstep
