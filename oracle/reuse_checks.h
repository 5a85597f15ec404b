// Reuse: R1 and R2 (semantics 9).
//
// Verified: MATCH's hit and F, LOOKUP's whole set of lengths and the vote equal the brute-force
// specification over the ledger's holdings at that instant, injected false answers of the store
// applied (R1); the store is asked, unless some load has failed since the request came, and is not
// asked by a request that had to start again because one had (R1); giving up for want of room is
// true: free plus evictable rows were too few, and for state slots nothing else ran, unless a fault
// refused the allocation (R1); an INSERT with a state makes its end a legal device hit, and the
// tree still has every state that no eviction took (R2); once no offload is on its way, every state
// that an OFFLOAD walked over can be restored on an empty device, unless the store lost or refused
// an object that it needs (R2).
//
// Not verified: recency, that is, whether the right node was evicted; whether it was on this
// request's path that a load failed, if it was waiting then; and, under `reoffload = never`, states
// and SWA rows that were gained after their node was flagged (that policy loses them, which is
// counted as hit loss elsewhere). The walk is expected to be reported before the puts that it
// queues.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "oracle/checker.h"

namespace lockstep::oracle {

class ReuseChecks : public Checker {
 public:
  explicit ReuseChecks(const Scene& scene)
      : scene_(scene), walked_(scene.ledgers.size()), queued_by_walk_(scene.ledgers.size()) {}
  void before(const Event& event) override;
  void after(const Event& event) override;
  void audit(RankId rank, bool quiescent) override;

 private:
  void check(const Event& event, const Matched& matched);
  void check_query(const Event& event, const Matched& matched);
  void check(const Event& event, const LookedUp& looked_up);
  void check(const Event& event, const Voted& voted);
  void check(const Event& event, const Inserted& inserted);
  void check(const Event& event, const OffloadQueued& queued);
  void check(const Event& event, const OffloadWalked& walked);
  template <class Other>
  void check(const Event&, const Other&) {}

  void note_refusal(const Event& event, const AllocationFailed& failed);
  void check_gave_up(const Event& event, const GaveUp& gave_up);
  bool is_short_of_slots(const GaveUp& gave_up, const RequestRecord& request) const;
  bool others_are_active(RequestId request) const;
  Rows evictable_for(RankId rank, Component component, ContentId boundary) const;
  std::set<ContentId> loading_contents(RankId rank) const;
  bool is_loading(const LedgerNode& node, const std::set<ContentId>& loading) const;
  bool is_pending(RankId rank, const LedgerNode& node) const;
  void check_walked(RankId rank);
  bool is_stored_or_excused(RankId rank, ContentId content) const;

  const Scene& scene_;
  std::set<RequestId> met_failed_load_;  // some load has failed since they came
  std::set<RequestId> started_again_;    // because of one: they do not ask the store again
  std::map<RequestId, StepId> refused_;  // justified refusals of rows, and the step of the last one
  std::vector<std::set<ContentId>>
      walked_;  // by rank: states whose offload is still to be confirmed
  std::vector<std::set<NodeId>>
      queued_by_walk_;  // by rank: nodes queued since the last walk was reported
};

}  // namespace lockstep::oracle
