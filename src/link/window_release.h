// Window release: a request gives back its own SWA pages that neither its next forward nor a
// checkpoint still needs (semantics 5, Window release). Rows of the tree leave only by eviction.
#pragma once

#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

class WindowRelease {
 public:
  explicit WindowRelease(const Rank& rank) : rank_(rank) {}
  virtual ~WindowRelease() = default;

  // Before a forward that starts at `start`: frees own SWA pages wholly below
  // min(start - (W-1), c - window_pages * page), rounded down to a page, and raises the cursor to
  // there.
  void run(RequestState& request, Tokens start);

 protected:
  // c: the oldest checkpoint that may still be donated; none: the first term alone.
  virtual std::optional<Tokens> oldest_donatable(const RequestState& request) const;
  // The first `count` own pages leave the request and go back to the pool.
  virtual void give_back(RequestState& request, Pages count);

  const Rank& rank_;
};

}  // namespace lockstep
