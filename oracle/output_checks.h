// Outputs: D2 and D3 (semantics 9).
//
// Verified for every position of an accepted forward: the output (logits, or the hidden word)
// equals the replica's bit for bit (D2); for numeric models the KL of the fp64 reference's
// distribution to the run's is at most 1e-9 (D3). What was compared is tallied per request.
//
// Not verified: outputs that were dropped; outputs of ranks above 0 against the reference (they are
// compared with the replica, and so with rank 0).
#pragma once

#include <map>
#include <optional>

#include "oracle/checker.h"
#include "oracle/kl.h"
#include "oracle/reference.h"

namespace lockstep::oracle {

class OutputChecks : public Checker {
 public:
  explicit OutputChecks(const Scene& scene);
  void after(const Event& event) override;

 private:
  void check_segment(const Event& event, const SegmentView& segment);
  // Guesses that were accepted are what the model generates itself. `expected`: the replica's
  // outputs of all tokens of the segment.
  void check_drafts(const Event& event, const SegmentView& segment,
                    std::span<const std::byte> expected);
  void report_difference(const Event& event, const SegmentView& segment,
                         std::span<const std::byte> expected);
  void compare_logits(const Event& event, const SegmentView& segment, const RequestRecord& request,
                      std::span<const std::byte> expected);

  const Scene& scene_;
  std::optional<Reference> reference_;  // numeric models
  std::map<RequestId, LogprobTally> tallies_;
};

}  // namespace lockstep::oracle
