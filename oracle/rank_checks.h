// Agreement of the ranks: K1 (semantics 9).
//
// Verified, when the next step begins and at quiescence: every rank's tree holds the same
// components of the same contents (states and SWA tombstones included) and is cut into nodes at the
// same places; the same number of rows is free in every pool; each request that moved in the step
// has the same device hit, boundary and fed length; the loads and offloads that were settled in it
// are the same, with the same outcomes. The tree is compared by a digest that the ledger keeps, so
// a step in which nothing changed costs nothing; what differs is looked for only then.
//
// Not verified: row numbers, node ids and lock counts, which no other rank ever sees; recency,
// which shows as another tree once it matters; what happens between the phases of one step.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "oracle/checker.h"

namespace lockstep::oracle {

class RankChecks : public Checker {
 public:
  explicit RankChecks(const Scene& scene) : scene_(scene), books_(scene.ledgers.size()) {}
  void before(const Event& event) override;
  void after(const Event& event) override;
  void audit(RankId rank, bool quiescent) override;

 private:
  struct Progress {
    std::optional<Tokens> matched;
    std::optional<Tokens> device_hit;  // at COMMIT
    std::optional<Tokens> boundary;
    std::optional<Tokens> fed;
    bool operator==(const Progress&) const = default;
  };
  // What one rank did since the step began.
  struct StepBook {
    std::map<RequestId, Progress> requests;
    std::map<LoadId, bool> loads;  // settled ones, and whether they were good
    std::map<OffloadId, bool> offloads;
  };
  // A node by what it holds: the content at its end, and the page that it begins with.
  using NodePlace = std::tuple<ContentId, Pages>;

  void note(const Event& event, const Committed& committed);
  void note(const Event& event, const ForwardAccepted& accepted);
  void note(const Event& event, const Matched& matched);
  void note(const Event& event, const LoadFinished& finished);
  void note(const Event& event, const OffloadFinished& finished);
  void note(const Event&, const NodeCreated&) { nodes_changed_ = true; }
  void note(const Event&, const NodeSplit&) { nodes_changed_ = true; }
  void note(const Event&, const NodeRemoved&) { nodes_changed_ = true; }
  void note(const Event&, const RowsAllocated&) { rows_changed_ = true; }
  void note(const Event&, const RowsFreed&) { rows_changed_ = true; }
  void note(const Event&, const Evicted&) { rows_changed_ = true; }
  void note(const Event&, const RowsWithdrawn&) { rows_changed_ = true; }
  void note(const Event&, const Inserted&) { rows_changed_ = true; }
  template <class Other>
  void note(const Event&, const Other&) {}

  bool has_several_ranks() const { return books_.size() > 1; }
  void compare();
  void compare_holdings(RankId rank);
  void compare_nodes(RankId rank);
  void compare_free_rows(RankId rank);
  void compare_requests(RankId rank);
  template <class Id>
  void compare_outcomes(RankId rank, std::string_view what, const std::map<Id, bool>& first,
                        const std::map<Id, bool>& other);
  std::vector<NodePlace> places(RankId rank) const;
  std::string describe(ContentId content) const;
  void report(RankId rank, RequestId request, std::string on_first, std::string on_this);

  const Scene& scene_;
  std::vector<StepBook> books_;  // by rank
  bool nodes_changed_ = false;   // since the last comparison
  bool rows_changed_ = false;
};

}  // namespace lockstep::oracle
