// COMMIT: make the checkpoint the request's copy-on-write source, and load what the tree adopted
// (semantics 4).
#pragma once

#include <optional>
#include <vector>

#include "link/load_queue.h"
#include "link/rank.h"
#include "link/request_state.h"
#include "link/transfer.h"

namespace lockstep {

class CommitPhase {
 public:
  CommitPhase(const Rank& rank, const TransferPlanner& planner, LoadQueue& loads)
      : rank_(rank), planner_(planner), loads_(loads) {}
  virtual ~CommitPhase() = default;

  // After INSERT of a load that ends at `boundary`. Cannot fail: LOAD made sure of Q. `load` fills
  // what the tree adopted; none: it has (`after_load`).
  void commit_load(RequestState& request, Tokens boundary, const InsertOutcome& inserted,
                   std::optional<LoadId> load);
  // `after_load`: all rows that LOAD took are filled first.
  void queue_unpublished(RequestState& request, Tokens boundary, LoadId load);
  // Device hit without a tail. REQUIRES: the request holds Q, or the model has no MAMBA component.
  void commit_hit(RequestState& request);
  // No hit at all: Q is cleared before the first forward. REQUIRES: as commit_hit().
  void commit_empty(RequestState& request);

 protected:
  // Frees T if the canonical node had a state already.
  virtual void release_surplus(RequestState& request, const InsertOutcome& inserted);
  // Q, if the request has none yet: from the free list.
  virtual void take_private_slot(RequestState& request);
  // The tree slot that Q is to be copied from.
  virtual Row choose_source(const RequestState& request, const Node& canonical) const;
  // Makes `source` the copy-on-write source and locks it until the copy has run.
  virtual void adopt_state(RequestState& request, Node& canonical, Row source);
  // The transfers of what the tree adopted; nothing else is loaded.
  virtual std::vector<Transfer> keep_adopted(const RequestState& request,
                                             const InsertOutcome& inserted, Tokens boundary) const;

  const Rank& rank_;
  const TransferPlanner& planner_;

 private:
  void point_at_canonical(RequestState& request, Node& node);
  // The request resumes at `boundary` from here on.
  void begin(RequestState& request, Tokens boundary);
  void report(const RequestState& request, const Node& node, bool mamba_exist, bool from_load);

  LoadQueue& loads_;
  std::uint64_t next_commit_ = 1;
};

}  // namespace lockstep
