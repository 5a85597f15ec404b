// MATCH: what the tree already has for a request (semantics 3 and 9, R1).
#pragma once

#include <span>
#include <vector>

#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

class MatchPhase {
 public:
  explicit MatchPhase(const Rank& rank) : rank_(rank) {}
  virtual ~MatchPhase() = default;

  // Finds d, the deepest boundary <= length - 1 with FULL rows on [0, d), SWA rows in the window
  // below d and a state at d; locks its node and marks the use. `request.hashes` must name the
  // whole pages of its `length` tokens. An earlier result is given back first. Without a hit no
  // lock is taken.
  void run(RequestState& request, Tokens length, bool query_store);

 protected:
  // The deepest boundary that may be used: the last token is always computed.
  virtual Tokens limit(const RequestState& request, Tokens length) const;
  // Pages below a boundary whose SWA rows must be there.
  virtual Pages window_needed() const;

  // The ticket on the hit's node.
  virtual LockTicket lock_hit(RequestId request, Node& node) const;

  const Rank& rank_;

 private:
  Pages deepest_hit(const TreePath& path, Pages limit) const;
  std::vector<bool> swa_present(const TreePath& path) const;
};

}  // namespace lockstep
