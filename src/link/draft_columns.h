// Slots for the states inside a forward over drafted tokens (speculative decoding).
//
// Such a forward computes tokens [start, end) of which those beyond the first are guesses, and only
// afterwards it is known how many were right. The state after its last token is in Q; the one after
// each earlier token is in a column of its own:
//
//   token    start     start+1   ...  end-1
//   state    column 0  column 1  ...  Q
//
// The state after the last token that is accepted becomes Q; the other slots go back.
#pragma once

#include <vector>

#include "link/allocator.h"
#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

class DraftColumns {
 public:
  DraftColumns(const Rank& rank, RowAllocator& allocator) : rank_(rank), allocator_(allocator) {}
  virtual ~DraftColumns() = default;

  // The request's next forward is to compute `drafts` guesses behind the token `start`. Returns for
  // how many there are slots (without a MAMBA component, for all). Asked again with fewer, gives
  // the surplus back.
  Tokens take(RequestState& request, Tokens start, Tokens drafts);
  // The tokens up to `end` of that forward were accepted: the state after them becomes Q.
  // REQUIRES: the request has columns.
  virtual void keep(RequestState& request, Tokens end);
  // What the forward writes, ascending.
  static std::vector<SnapshotView> views(const RequestState& request);

 protected:
  // Which column becomes Q. REQUIRES: the state after `end` is in a column.
  virtual std::size_t column_of(const RequestState& request, Tokens end) const;

 private:
  const Rank& rank_;
  RowAllocator& allocator_;
};

}  // namespace lockstep
