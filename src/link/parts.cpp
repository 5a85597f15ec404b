#include "link/parts.h"

#include "link/linker.h"

namespace lockstep {

std::unique_ptr<Linker> LinkParts::linker(const LinkerConfig& config, Device& device,
                                          PoolGroup& pools, Store& store, EventSink& sink,
                                          AllocationGate* gate) const {
  return std::make_unique<Linker>(config, *this, device, pools, store, sink, gate);
}

std::unique_ptr<KeyScheme> LinkParts::key_scheme(Tokens page, RankId rank,
                                                 std::uint32_t ranks) const {
  return std::make_unique<KeyScheme>(page, rank, ranks);
}
std::unique_ptr<EvictionPolicy> LinkParts::eviction_policy(RankId) const {
  return std::make_unique<EvictionPolicy>();
}
std::unique_ptr<NodeSplitter> LinkParts::node_splitter() const {
  return std::make_unique<NodeSplitter>();
}
std::unique_ptr<TransferPlanner> LinkParts::transfer_planner() const {
  return std::make_unique<TransferPlanner>();
}
std::unique_ptr<RowAllocator> LinkParts::row_allocator(const Rank& rank,
                                                       AllocationGate* gate) const {
  return std::make_unique<RowAllocator>(rank, gate);
}
std::unique_ptr<MatchPhase> LinkParts::match_phase(const Rank& rank) const {
  return std::make_unique<MatchPhase>(rank);
}
std::unique_ptr<LookupPhase> LinkParts::lookup_phase(const Rank& rank) const {
  return std::make_unique<LookupPhase>(rank);
}
std::unique_ptr<RankVote> LinkParts::rank_vote() const {
  return std::make_unique<RankVote>();
}
std::unique_ptr<LoadPhase> LinkParts::load_phase(const Rank& rank, RowAllocator& allocator) const {
  return std::make_unique<LoadPhase>(rank, allocator);
}
std::unique_ptr<InsertPhase> LinkParts::insert_phase(const Rank& rank) const {
  return std::make_unique<InsertPhase>(rank);
}
std::unique_ptr<LoadQueue> LinkParts::load_queue(const Rank& rank) const {
  return std::make_unique<LoadQueue>(rank);
}
std::unique_ptr<RollBackPhase> LinkParts::roll_back_phase(const Rank& rank) const {
  return std::make_unique<RollBackPhase>(rank);
}
std::unique_ptr<CommitPhase> LinkParts::commit_phase(const Rank& rank,
                                                     const TransferPlanner& planner,
                                                     LoadQueue& loads) const {
  return std::make_unique<CommitPhase>(rank, planner, loads);
}
std::unique_ptr<CowPhase> LinkParts::cow_phase(const Rank& rank, LoadQueue& loads) const {
  return std::make_unique<CowPhase>(rank, loads);
}
std::unique_ptr<OffloadQueue> LinkParts::offload_queue(const Rank& rank) const {
  return std::make_unique<OffloadQueue>(rank);
}
std::unique_ptr<OffloadPhase> LinkParts::offload_phase(const Rank& rank,
                                                       const TransferPlanner& planner,
                                                       OffloadQueue& queue) const {
  return std::make_unique<OffloadPhase>(rank, planner, queue);
}
std::unique_ptr<CheckpointTracker> LinkParts::checkpoint_tracker(const Rank& rank,
                                                                 RowAllocator& allocator) const {
  return std::make_unique<CheckpointTracker>(rank, allocator);
}
std::unique_ptr<DraftColumns> LinkParts::draft_columns(const Rank& rank,
                                                       RowAllocator& allocator) const {
  return std::make_unique<DraftColumns>(rank, allocator);
}
std::unique_ptr<WindowRelease> LinkParts::window_release(const Rank& rank) const {
  return std::make_unique<WindowRelease>(rank);
}

}  // namespace lockstep
