// PREPARE and INSERT: hand a request's rows to the tree and take the canonical ones back (semantics
// 3, 5, 6).
#pragma once

#include <optional>

#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

class InsertPhase {
 public:
  explicit InsertPhase(const Rank& rank) : rank_(rank) {}
  virtual ~InsertPhase() = default;

  // PREPARE of a load that ends at `boundary`: raises the SWA cursor to max(0, boundary - window),
  // never lowers it.
  virtual void prepare(RequestState& request, Tokens boundary);

  // INSERT of [0, boundary) with the rows that LOAD took; `load` still fills them, none: they are
  // full. The state stays in request.load if it was
  // a duplicate.
  InsertOutcome insert_load(RequestState& request, Tokens boundary, std::optional<LoadId> load);

  // INSERT of [0, checkpoint.depth) with the request's own rows; afterwards its tables name the
  // canonical rows and its lock is on the node there. A duplicate state is freed. `checkpoint.slot`
  // is empty without a MAMBA component.
  void insert_own(RequestState& request, Checkpoint checkpoint, Tokens fed, InsertCause cause);

 protected:
  const Rank& rank_;

 private:
  void report(const RequestState& request, const InsertOutcome& outcome, Inserted event);
};

}  // namespace lockstep
