// Boundary semantics: B1 to B11 (semantics 9).
//
// Verified: that a COMMIT resumes exactly at the largest boundary that every rank can restore, or
// below it for a recorded reason (B1); that the request's FULL and SWA rows there are the tree's
// rows of just these pages (B2, B3); that a state's label, its slot and its boundary agree, and
// that no INSERT covers a token that was not fed (B4); that every key names the content (B5); which
// slot the copy comes from, that it is locked, and who owns Q (B6, B7); that a surplus T is freed
// once (B8); that adopted and duplicate ranges partition what came in and follow what the tree had
// (B9); that the copy ran once, before the first results were taken (B10); that COMMIT follows
// INSERT without a failure (B11).
//
// Not verified here: the bytes (data_checks); whether the set of restorable lengths itself was
// right (reuse_checks); the order of the copy against every single read, which needs the race
// detector (H1); L against the vote of several ranks after a failed load, which comes with
// failures.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "oracle/checker.h"

namespace lockstep::oracle {

class BoundaryChecks : public Checker {
 public:
  explicit BoundaryChecks(const Scene& scene)
      : scene_(scene), open_(scene.ledgers.size()), surplus_(scene.ledgers.size()) {}
  void before(const Event& event) override;
  void after(const Event& event) override;

 private:
  // Between the INSERT of a load and the end of its COMMIT, on one rank.
  struct OpenCommit {
    RequestId request;
    Row target;  // T
    bool is_surplus = false;
    int frees = 0;
  };
  struct CommitState {
    CommitId id;
    Tokens boundary;
    ContentId content = kNoContent;
    Row source;
    Row q;
    int copies = 0;
    bool has_run = false;  // a forward after it was accepted
    bool is_over = false;  // the request was sent back: a copy in flight is of no account
  };

  void check(const Event& event, const Inserted& inserted);
  void check(const Event& event, const RowsFreed& freed);
  void check(const Event& event, const AllocationFailed& failed);
  void check(const Event& event, const StepBegun&);
  void check(const Event& event, const LoadFinished& finished);
  template <class Other>
  void check(const Event&, const Other&) {}
  void follow(const Event& event, const Committed& committed);
  void follow(const Event& event, const LoadQueued& queued);
  void follow(const Event& event, const OffloadQueued& queued);
  void follow(const Event& event, const CopyExecuted& copied);
  void follow(const Event& event, const RequestRetracted&) { leave_commit(event.request); }
  void follow(const Event& event, const RequestRestarted&) { leave_commit(event.request); }
  void follow(const Event& event, const ForwardAccepted& accepted);
  void follow(const Event& event, const CheckpointTracked& tracked);
  template <class Other>
  void follow(const Event&, const Other&) {}

  void leave_commit(RequestId request);
  void check_insert_label(const Event& event, const Inserted& inserted,
                          const RequestRecord& request);
  void check_partition(const Event& event, Component component, PageRange whole,
                       std::span<const PageRange> adopted, std::span<const PageRange> duplicate,
                       const RequestRecord& request);
  void check_kept(const Event& event, Component component, std::span<const PageRange> ranges,
                  bool in_tree, const RequestRecord& request);
  void check_boundary(const Event& event, const Committed& committed, const RequestRecord& request);
  void check_rows(const Event& event, const Committed& committed, const RequestRecord& request);
  void check_row(const Event& event, std::string_view invariant, Component component,
                 std::span<const Row> rows, Pages page, ContentId content);
  void check_source(const Event& event, const Committed& committed, ContentId content);
  void check_private_slot(const Event& event, const Committed& committed);
  void check_surplus(const Event& event, const Committed& committed);
  void check_keys(const Event& event, const TransferView& view,
                  std::span<const ContentId> contents);

  const Scene& scene_;
  std::vector<std::optional<OpenCommit>> open_;  // by rank
  std::vector<Row> surplus_;                     // by rank: the last T that was a duplicate
  std::map<std::pair<RankId, RequestId>, CommitState> commits_;
};

}  // namespace lockstep::oracle
