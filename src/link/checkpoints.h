// Which depths a forward tracks, and in which slots (semantics 6).
#pragma once

#include <vector>

#include "link/allocator.h"
#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

class CheckpointTracker {
 public:
  CheckpointTracker(const Rank& rank, RowAllocator& allocator)
      : rank_(rank), allocator_(allocator) {}
  virtual ~CheckpointTracker() = default;

  // Before a forward over prompt tokens [start, end): takes slots, as far as they can be had, for
  // the depths to track. The branching point has precedence. Returns the snapshots to write,
  // ascending.
  std::vector<SnapshotView> track_prefill(RequestState& request, Tokens start, Tokens end);
  // Before a decode over [start, end): the multiples of the decode grid that it reaches, in
  // alternating slots, or, as guesses reach several and may all be wrong, in slots of their own.
  // Ascending.
  std::vector<SnapshotView> track_decode(RequestState& request, Tokens start, Tokens end);
  // Of a forward over drafts only the tokens up to `end` were accepted: what it tracked beyond was
  // a state of tokens that the request does not have. Superseded ones go back, too.
  virtual void drop_rejected(RequestState& request, Tokens end);
  // The forward that ended at `end` has been accepted: what it tracked can be donated.
  void written(RequestState& request, Tokens end);
  // While decoding, only the newest written checkpoint is donated at the end: the others need no
  // window any more.
  void supersede(RequestState& request);

  // Takes the checkpoints that chunk end donates, ascending: all that are written and lie beyond
  // what is inserted.
  std::vector<Checkpoint> donate_chunk_end(RequestState& request);
  // Takes the newest checkpoint that is written, lies beyond what is inserted and is not deeper
  // than what may be inserted after `fed` tokens.
  virtual std::optional<Checkpoint> donate_newest(RequestState& request, Tokens fed);
  // How much of a sequence an INSERT at finish may cover: what has been fed.
  virtual Tokens insertable(Tokens fed) const { return fed; }

 protected:
  // The token after which a forward over [start, end) takes the snapshot for the checkpoint at
  // `depth`.
  virtual Tokens snapshot_at(Tokens depth, Tokens start, Tokens end) const;
  // The depth of the state that a decode up to `end` leaves.
  virtual Tokens decoded_depth(Tokens end) const { return end; }
  // The depths that a prefill over [start, end) should track, in order of precedence.
  virtual std::vector<Tokens> boundary_for(const RequestState& request, Tokens start,
                                           Tokens end) const;
  // The slot to overwrite when both of the decode pair are in use: the older one's. A checkpoint
  // of a prompt chunk is none of the pair: its forward may be in flight still.
  virtual std::size_t alternate(const RequestState& request) const;

  const Rank& rank_;

 private:
  std::vector<Tokens> all_multiples(Tokens start, Tokens end) const;
  // The state at `depth` becomes the request's last checkpoint; false: there is no slot for it.
  bool take_decode_slot(RequestState& request, Tokens depth, bool drafted);

  RowAllocator& allocator_;
};

}  // namespace lockstep
