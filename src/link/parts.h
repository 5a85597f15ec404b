// The classes a linker is made of, each made by one virtual function: whoever wants one step to
// behave differently overrides the function that makes its class (planted defects, other policies).
#pragma once

#include <memory>

#include "link/allocator.h"
#include "link/checkpoints.h"
#include "link/commit.h"
#include "link/cow.h"
#include "link/draft_columns.h"
#include "link/insert.h"
#include "link/keys.h"
#include "link/load.h"
#include "link/load_queue.h"
#include "link/lookup.h"
#include "link/match.h"
#include "link/offload.h"
#include "link/rank_vote.h"
#include "link/roll_back.h"
#include "link/transfer.h"
#include "link/window_release.h"
#include "tree/eviction.h"
#include "tree/split.h"

namespace lockstep {

struct LinkerConfig;
class Linker;

class LinkParts {
 public:
  virtual ~LinkParts() = default;

  // The linker of these parts; see its constructor.
  virtual std::unique_ptr<Linker> linker(const LinkerConfig& config, Device& device,
                                         PoolGroup& pools, Store& store, EventSink& sink,
                                         AllocationGate* gate) const;

  virtual std::unique_ptr<KeyScheme> key_scheme(Tokens page, RankId rank,
                                                std::uint32_t ranks) const;
  virtual std::unique_ptr<EvictionPolicy> eviction_policy(RankId rank) const;
  virtual std::unique_ptr<NodeSplitter> node_splitter() const;
  virtual std::unique_ptr<TransferPlanner> transfer_planner() const;
  virtual std::unique_ptr<RowAllocator> row_allocator(const Rank& rank, AllocationGate* gate) const;
  virtual std::unique_ptr<MatchPhase> match_phase(const Rank& rank) const;
  virtual std::unique_ptr<LookupPhase> lookup_phase(const Rank& rank) const;
  virtual std::unique_ptr<RankVote> rank_vote() const;
  virtual std::unique_ptr<LoadPhase> load_phase(const Rank& rank, RowAllocator& allocator) const;
  virtual std::unique_ptr<InsertPhase> insert_phase(const Rank& rank) const;
  virtual std::unique_ptr<LoadQueue> load_queue(const Rank& rank) const;
  virtual std::unique_ptr<RollBackPhase> roll_back_phase(const Rank& rank) const;
  virtual std::unique_ptr<CommitPhase> commit_phase(const Rank& rank,
                                                    const TransferPlanner& planner,
                                                    LoadQueue& loads) const;
  virtual std::unique_ptr<CowPhase> cow_phase(const Rank& rank, LoadQueue& loads) const;
  virtual std::unique_ptr<OffloadQueue> offload_queue(const Rank& rank) const;
  virtual std::unique_ptr<OffloadPhase> offload_phase(const Rank& rank,
                                                      const TransferPlanner& planner,
                                                      OffloadQueue& queue) const;
  virtual std::unique_ptr<DraftColumns> draft_columns(const Rank& rank,
                                                      RowAllocator& allocator) const;
  virtual std::unique_ptr<CheckpointTracker> checkpoint_tracker(const Rank& rank,
                                                                RowAllocator& allocator) const;
  virtual std::unique_ptr<WindowRelease> window_release(const Rank& rank) const;
};

}  // namespace lockstep
