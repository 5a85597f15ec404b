// LOAD and ABORT: take every row that the tail needs, or none (semantics 3, 4).
#pragma once

#include "link/allocator.h"
#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

// LOAD goes component by component, so that the ranks can vote after each: no rank evicts for a
// load that another one has failed already.
enum class LoadStage { full, swa, state, private_slot };

class LoadPhase {
 public:
  LoadPhase(const Rank& rank, RowAllocator& allocator) : rank_(rank), allocator_(allocator) {}
  virtual ~LoadPhase() = default;

  // One stage of LOAD of the tail [device hit, boundary): its FULL rows, the SWA rows of its
  // trailing window, the slot T, or the certainty that COMMIT will have Q. False: not to be had;
  // abort() follows.
  bool run(RequestState& request, Tokens boundary, LoadStage stage);
  // Reports what the stages have taken, once all have succeeded.
  void planned(const RequestState& request, Tokens boundary) const;
  // Gives back what run() took, in reverse order. The request keeps Q.
  virtual void abort(RequestState& request);

  // A request that resumes at its device hit needs Q only. False: none can be had.
  bool secure_private_slot(RequestState& request);

 protected:
  // COMMIT cannot fail: Q is there, or free, or (`at_commit`) will be T's slot because the boundary
  // has a state already.
  virtual bool private_slot_is_sure(RequestState& request, Pages boundary);

  const Rank& rank_;

 private:
  bool take(RequestState& request, Component component, Rows count, Purpose purpose,
            OwnedRows& into);
  void give_back(RequestState& request, Component component, OwnedRows& rows);

  RowAllocator& allocator_;
};

}  // namespace lockstep
