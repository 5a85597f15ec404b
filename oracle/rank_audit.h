// The full check of one rank: what the Inspector shows must be consistent in itself and agree with
// the ledger.
//
// Lives for one audit. Counts the owners of every row while it walks free lists, nodes, requests
// and transfers, then checks the sums. One walk over the tree serves all families: C1 to C6, S2 in
// full, the state that hangs on a wrong node (B4), the state that is gone (R2).
//
// Verified: what the headers of those families say of the full check. Not verified: what changed
// since the last audit and changed back.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "oracle/checker.h"

namespace lockstep::oracle {

class RankAudit {
 public:
  RankAudit(const Scene& scene, RankId rank);
  void run(bool quiescent);

 private:
  enum Kind : std::uint8_t { kFree = 1, kTree = 2, kRequest = 4, kTransfer = 8, kWithdrawn = 16 };
  struct RowCount {
    std::uint8_t owners = 0;  // how many
    std::uint8_t kinds = 0;   // of which kinds
  };
  struct SeenNode {
    Pages end;
    bool has_state = false;
    bool is_flagged = false;  // or a root, which needs no flag
  };

  void count_free(Component component);
  void count_withdrawn(Component component);
  void visit_node(const NodeView& node);
  void check_shape(const NodeView& node);
  void check_contents(const NodeView& node, const LedgerNode& known);
  void check_page(const NodeView& node, Component component, std::size_t offset, Row actual,
                  ContentId content);
  void check_state(const NodeView& node, const LedgerNode& known);
  void check_locks(const NodeView& node, const LedgerNode* known);
  void visit_request(const RequestRowsView& request);
  void own(RequestId request, Component component, Row row);
  void visit_transfer(const TransferRowsView& transfer);
  void check_reference(Component component, Row row, std::string_view holder, RequestId request);
  void check_owners(Component component);
  void check_balance(Component component);
  void check_tickets();
  bool outlives_node(NodeId node) const;
  bool is_held(const LockRecord& lock) const;
  void check_states_kept();
  void check_quiescent();
  void count(Component component, Row row, Kind kind);
  void report(std::string_view invariant, std::string expected, std::string actual,
              RequestId request = kNoRequest, Where where = {});

  const Scene& scene_;
  RankId rank_;
  const Inspector& inspector_;
  const RankLedger& ledger_;
  std::array<std::vector<RowCount>, 3> rows_;
  std::array<Rows, 3> tree_rows_;
  std::unordered_map<NodeId, SeenNode> seen_;  // looked up only, never iterated
  std::size_t pending_marks_ = 0;
  std::size_t held_rows_ = 0;  // by requests and transfers
};

}  // namespace lockstep::oracle
