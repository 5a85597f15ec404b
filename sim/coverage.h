// Sometimes-points: states that a campaign must reach to be worth something (simulation.md). They
// are read off the observer's events, so the system under test carries no marks.
//
// Verified: that the events of a state occurred. Not verified: that two states met on the same row
// or node, where no event says so.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/events.h"

namespace lockstep::sim {

enum class Sometimes {
  commit_empty,
  commit_hit,
  commit_load,
  commit_mamba_exist,
  chunk_end_mamba_exist,
  finish_mamba_exist,
  retract_inserts,
  load_adopts_nothing,
  load_adopts_part,
  load_fails,
  loads_share_batch,
  load_not_queued_again,
  match_beyond_hit,
  lookup_several,
  lookup_nothing,
  lookup_ranks_differ,
  vote_below_longest,
  gave_up_allocation,
  gave_up_tail,
  gave_up_hit,
  abort_full,
  abort_swa,
  abort_mamba,
  short_full_load,
  short_swa_load,
  short_tracking,
  short_full_forward,
  short_swa_forward,
  refused_pages,
  refused_state_target,
  refused_private_slot,
  refused_tracking,
  split,
  split_by_load,
  split_while_offloading,
  evict_full_pressure,
  evict_swa_pressure,
  evict_mamba_pressure,
  evict_cascade,
  evict_asked,
  evict_flush,
  roll_back,
  window_release,
  retracted,
  resumed_with_hit,
  cancelled_waiting,
  cancelled_running,
  cancelled_while_loading,
  flush_while_running,
  restart_resumes,
  refused_at_submission,
  offload_fails,
  offload_state_only,
  offload_swa_only,
  pool_shrinks,
  put_refused,
  put_again,
  store_removed,
  store_cleared,
  false_answer,
  forward_mixed,
  forward_several,
  two_snapshots,
  decode_checkpoint,
  copy_executed,
  slot_cleared,
  drafts_all_right,
  drafts_some_right,
  drafts_all_wrong,
  drafts_pass_checkpoint,
  short_draft,
  refused_draft,
};
inline constexpr std::size_t kSometimesCount =
    static_cast<std::size_t>(Sometimes::refused_draft) + 1;

std::string_view name(Sometimes point);

class Coverage : public Observer {
 public:
  void on_event(const Event& event) override;
  // The points that were reached, by name.
  std::map<std::string, std::int64_t> counts() const;

 private:
  void hit(Sometimes point, bool reached = true) {
    counts_[static_cast<std::size_t>(point)] += reached ? 1 : 0;
  }
  template <class Other>
  void on(const Event&, const Other&) {}
  void on(const Event& event, const RequestSubmitted& submitted);
  void on(const Event& event, const RequestRefused&);
  void on(const Event& event, const RequestRetracted&);
  void on(const Event& event, const RequestFinished&);
  void on(const Event& event, const RequestCancelled&);
  void on(const Event& event, const CacheFlushed&);
  void on(const Event& event, const EngineRestarted&);
  void on(const Event& event, const Matched& matched);
  void on(const Event& event, const LookedUp& looked_up);
  void on(const Event& event, const Voted& voted);
  void on(const Event& event, const GaveUp& gave_up);
  void on(const Event& event, const AllocationFailed& failed);
  void on(const Event& event, const LoadAborted& aborted);
  void on(const Event& event, const Inserted& inserted);
  void on(const Event& event, const Committed& committed);
  void on(const Event& event, const LoadQueued& queued);
  void on(const Event& event, const LoadStarted&);
  void on(const Event& event, const LoadFinished& finished);
  void on(const Event& event, const CopyExecuted&);
  void on(const Event& event, const SlotCleared&);
  void on(const Event& event, const ForwardLaunched& launched);
  void on(const Event& event, const ForwardAccepted& accepted);
  void on(const Event& event, const RowsReleased&);
  void on(const Event& event, const NodeSplit& split);
  void on(const Event& event, const Evicted& evicted);
  void on(const Event& event, const OffloadQueued& queued);
  void on(const Event& event, const OffloadFinished& finished);
  void on(const Event& event, const StorePut& put);
  void on(const Event& event, const StoreRemoved&);
  void on(const Event& event, const StoreCleared&);
  void on(const Event& event, const FalseAnswer&);
  void on(const Event& event, const RowsWithdrawn&);

  std::array<std::int64_t, kSometimesCount> counts_{};
  std::set<RequestId> running_;    // committed on rank 0
  std::set<RequestId> retracted_;  // and not committed since
  std::map<std::pair<RankId, LoadId>, RequestId> loads_;
  std::map<std::pair<RankId, OffloadId>, NodeId> offloads_;
  std::map<std::pair<ForwardId, RequestId>, Tokens> drafts_;  // of forwards in flight
  StepId started_in_;  // step of the last LoadStarted on rank 0
  bool has_started_ = false;
  bool split_since_insert_ = false;
  // Of the LOOKUP under way: what rank 0 found, and the longest of any rank.
  std::vector<Tokens> found_;
  Tokens longest_;
};

}  // namespace lockstep::sim
