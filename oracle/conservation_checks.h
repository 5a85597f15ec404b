// Conservation: C1 to C6 (semantics 9).
//
// Verified after every event: a row is taken only when free, freed only by its owner and while
// nothing refers to it (C1, C2); rows enter the tree from the request that brought them and leave
// it unlocked (C1, C3); loads and offloads use rows of the tree, and under `after_load` loads fill
// rows of their request (C1); a quarantined row is freed once no load, no copy and no request's row
// list refers to it (C1); only free rows leave a pool for good (C1); a ticket ends once (C3).
// Verified in full, from the Inspector and against the ledger: every row has exactly one owner and
// references point at no free row (C1); free lists are sets (C2); lock counts equal open tickets
// (C3); the sum of all kinds of rows is the pool (C4); nothing is left over at quiescence, in
// quarantine neither (C5); the shape of every node (C6); a state hangs where it belongs (B4).
//
// Not verified: that a free names the request that owned the row (the event does not say who
// frees); that no stream reads or writes a quarantined row when it is freed (H1); equality between
// ranks (K1).
#pragma once

#include "oracle/checker.h"

namespace lockstep::oracle {

class ConservationChecks : public Checker {
 public:
  explicit ConservationChecks(const Scene& scene) : scene_(scene) {}
  void before(const Event& event) override;
  void audit(RankId rank, bool quiescent) override;

 private:
  void check(const Event& event, const RowsAllocated& allocated);
  void check(const Event& event, const RowsFreed& freed);
  void check(const Event& event, const RowsWithdrawn& withdrawn);
  void check(const Event& event, const Inserted& inserted);
  void check(const Event& event, const Evicted& evicted);
  void check(const Event& event, const LockTaken& taken);
  void check(const Event& event, const LockReleased& released);
  void check(const Event& event, const LoadQueued& queued);
  void check(const Event& event, const OffloadQueued& queued);
  template <class Other>
  void check(const Event&, const Other&) {}

  void check_quarantined(const Event& event, const RowsFreed& freed);
  void check_adopted(const Event& event, Component component, Row row);
  void check_unpublished(const Event& event, const TransferView& view);
  void check_transfer(const Event& event, const TransferView& view, std::string_view kind);
  bool is_locked(RankId rank, NodeId node, Component component, Row row) const;
  void report_row(std::string_view invariant, const Event& event, Component component, Row row,
                  std::string expected, std::string actual);

  const Scene& scene_;
};

}  // namespace lockstep::oracle
