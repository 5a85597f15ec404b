// Rows: D1 (semantics 9).
//
// Verified bit for bit against the replica: every row that a good load filled, when it is voted
// good; every KV row range, every tracked state and Q as a forward left them, when its results are
// accepted; Q as the copy or the clearing left it, once the first results after it are accepted;
// rows and states when an INSERT makes them readable; every row of the tree at quiescence.
//
// With `overlap = per_layer` the forward has advanced the earlier layers of Q by the time the last
// one is copied: then the source is compared whole, and Q in its last layer. Where another forward
// of the request is in flight behind the one whose results are accepted (`ahead` = 1), Q may have
// moved on: then only what was tracked is compared. Rows that the request has given back since the
// launch are not compared either.
//
// Not verified: results that were dropped; bytes of a request's own rows after they were accepted
// and before they are inserted. Outputs are output_checks'.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "oracle/checker.h"

namespace lockstep::oracle {

class DataChecks : public Checker {
 public:
  explicit DataChecks(const Scene& scene) : scene_(scene) {}
  void before(const Event& event) override;
  void after(const Event& event) override;
  void audit(RankId rank, bool quiescent) override;

 private:
  // What was seen when the copy or the clearing ran, until a forward that used Q is accepted.
  struct PreparedSlot {
    Row source;  // Q itself where it was cleared
    Row q;
    std::optional<Tokens> boundary;          // none: cleared
    std::uint64_t digest = 0;                // of `source`
    std::optional<LayerId> differing_layer;  // of Q, from the source
  };

  void check_load(const Event& event, const LoadFinished& finished);
  void check_inserted(const Event& event, const Inserted& inserted);
  void check_segment(const Event& event, ForwardId forward, const SegmentView& segment);
  void check_prepared_slot(const Event& event, const RequestRecord& request);
  void check_written_rows(const Event& event, ForwardId forward, const SegmentView& segment,
                          const RequestRecord& request, Component component);
  void check_private_slot(const Event& event, const SegmentView& segment,
                          const RequestRecord& request);
  void check_snapshots(const Event& event, ForwardId forward, const SegmentView& segment,
                       const RequestRecord& request);
  void check_row(RankId rank, RequestId request, Component component, Row row, ContentId content,
                 std::string_view when);
  void note_launch(const Event& event, const ForwardLaunched& launched);
  void note_copy(const Event& event, const CopyExecuted& copied, Tokens boundary);
  void note_clearing(const Event& event, const SlotCleared& cleared);
  // Whether the row is still what `forward` was launched with: with another one in flight behind
  // it, the request may have given it back, and even have taken it again for another page.
  bool may_hold(const Event& event, ForwardId forward, Component component, Row row,
                RequestId request, ContentId content) const;

  struct LastCommit {
    CommitId id;
    Tokens boundary;
  };

  const LastCommit* commit_of(const Event& event, CommitId id) const;

  const Scene& scene_;
  std::map<std::pair<RankId, RequestId>, LastCommit> commits_;
  std::map<std::pair<RankId, RequestId>, PreparedSlot> prepared_;
  std::map<std::pair<RankId, RequestId>, ForwardId> newest_;  // launched with the request
  // Of each forward in flight: how many allocations there had been when it was launched.
  std::map<std::pair<RankId, ForwardId>, std::uint64_t> launches_;
};

}  // namespace lockstep::oracle
