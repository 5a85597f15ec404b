// LOOKUP: which lengths the store can restore beyond the device hit (semantics 3 and 9, R1).
#pragma once

#include <span>
#include <vector>

#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

// Which objects of the tail the store answered for, page by page from the device hit.
struct TailPresence {
  std::vector<bool> full;
  std::vector<bool> swa;  // empty without an SWA component
  std::vector<bool>
      state;  // object of the checkpoint that ends at this page; empty without a MAMBA component
};

class LookupPhase {
 public:
  explicit LookupPhase(const Rank& rank) : rank_(rank) {}
  virtual ~LookupPhase() = default;

  // Fills request.restorable: every length in (device hit, tokens.size() - 1] that this rank can
  // restore, ascending. `request.hashes` must name the whole pages of `tokens`.
  void run(RequestState& request, std::span<const TokenId> tokens);

 protected:
  // The hashes of the tail pages [begin, end), named as parts of the whole sequence.
  virtual std::vector<PageHash> tail_hashes(const RequestState& request,
                                            std::span<const TokenId> tokens, Pages begin,
                                            Pages end) const;
  // Tail-relative page counts n such that [hit, hit + n) can be restored.
  virtual std::vector<Pages> restorable(const TailPresence& tail) const;

  const Rank& rank_;

 private:
  TailPresence ask(std::span<const PageHash> hashes) const;
};

}  // namespace lockstep
