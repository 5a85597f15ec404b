// The ledger: a shadow of one rank's pools, tree, locks and transfers, kept from the pushed events
// alone.
//
// For every row of every pool it knows who owns it and what it should hold. The tree is kept by
// content, not by node:
//
//   rows:      free -> request -> tree -> leaving -> free          (owner of each row, one of
//   these; a roll-back makes it quarantined in place of leaving; free -> withdrawn is for good)
//   holdings:  content -> {FULL row, SWA row, state row}           (what the specification
//   asks) nodes:     id -> parent, range, the content at its end         (what locks and flags hang
//   on)
//
// The ledger never judges: it follows what it is told, and keeps going when that makes no sense.
// Checkers compare it with the events before they are applied, and with the Inspector in full.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "core/component.h"
#include "core/events.h"
#include "core/geometry.h"
#include "core/inspect.h"
#include "oracle/content.h"
#include "oracle/request_book.h"
#include "oracle/specification.h"

namespace lockstep::oracle {

enum class RowOwner {
  free,
  request,
  tree,
  leaving,      // out of the tree, not yet back in the pool
  quarantined,  // the same after a roll-back, where loads may still fill it
  withdrawn     // out of the pool for good
};
std::string_view name(RowOwner owner);

struct RowRecord {
  RowOwner owner = RowOwner::free;
  RequestId request = kNoRequest;  // owner request
  ContentId content = kNoContent;  // tree rows: what they hold or are being filled with
  std::uint64_t taken = 0;         // allocations of this rank up to the one that took it
  Tokens depth;  // slots: how many tokens the state covers, as far as forwards and loads told
  std::int64_t references = 0;  // running transfers and pending copies that name the row
};

struct LedgerNode {
  NodeId parent;
  Pages begin;
  Pages end;
  ContentId tip =
      kNoContent;  // content at the node's end; none at a root, or until its INSERT is reported
  bool is_root = false;
  bool removed = false;  // kept while a ticket is open
  bool rolled_back =
      false;  // a failed load took rows from it; if it is removed, tickets outlive it
  std::int64_t full_locks = 0;
  std::int64_t state_locks = 0;
  bool full_stored = false;
};

struct LockRecord {
  LockHolder holder = LockHolder::request;
  RequestId request = kNoRequest;
  NodeId node;
  ContentId tip = kNoContent;
  PageRange swa;
  bool mamba = false;
};

struct TransferPart {
  Component component = Component::full;
  PageRange pages;
  std::vector<Row> rows;
  std::vector<ContentId> contents;  // what each row should hold
};

struct TransferRecord {
  RequestId request = kNoRequest;  // loads
  NodeId node;                     // offloads
  Tokens boundary;
  std::vector<TransferPart> parts;
};

struct PendingCopy {
  Row source;
  Row q;
  CommitId commit;
};

class RankLedger {
 public:
  RankLedger(const ContentTable& contents, const RequestBook& requests, const Inspector& inspector);

  RankLedger(const RankLedger&) = delete;
  RankLedger& operator=(const RankLedger&) = delete;

  void apply(const Event& event);

  bool has(Component component) const { return !rows_[index(component)].empty(); }
  const RowRecord& row(Component component, Row row) const;
  // How many allocations there have been.
  std::uint64_t allocations() const { return allocations_; }
  // Rows without the trap, in order.
  std::size_t row_count(Component component) const { return rows_[index(component)].size(); }
  // The tree's row for `content`, or the trap row.
  Row tree_row(Component component, ContentId content) const;
  const Holdings& tree() const { return holdings_; }
  // Of which components the tree has of which contents: equal where the trees are, whatever the
  // rows.
  std::uint64_t holdings_digest() const { return holdings_digest_; }

  const std::map<NodeId, LedgerNode>& nodes() const { return nodes_; }
  const LedgerNode* node(NodeId id) const;
  const std::map<LockId, LockRecord>& locks() const { return locks_; }
  std::int64_t swa_locks(ContentId content) const;
  // True if a ticket covers the state at the node that ends with `content`.
  bool is_state_locked(ContentId content) const;
  const std::map<LoadId, TransferRecord>& loads() const { return loads_; }
  const std::map<OffloadId, TransferRecord>& offloads() const { return offloads_; }
  const std::map<RequestId, PendingCopy>& pending_copies() const { return pending_copies_; }

  Rows free_rows(Component component) const { return free_rows_[index(component)]; }
  // Rows that eviction could free now: FULL of nodes without a lock at or below them, SWA pages
  // without a lock, states without one.
  Rows evictable_rows(Component component) const;

 private:
  struct TreePage {
    std::array<Row, 3> rows{kTrapRow, kTrapRow, kTrapRow};
  };
  class TreeHoldings : public Holdings {
   public:
    explicit TreeHoldings(const RankLedger& ledger) : ledger_(ledger) {}
    bool has(Component component, ContentId content) const override {
      return ledger_.tree_row(component, content) != kTrapRow;
    }

   private:
    const RankLedger& ledger_;
  };

  void on(const Event& event, const RowsAllocated& allocated);
  void on(const Event& event, const RowsFreed& freed);
  void on(const Event& event, const RowsWithdrawn& withdrawn);
  void on(const Event& event, const ForwardAccepted& accepted);
  void on(const Event& event, const Inserted& inserted);
  void on(const Event& event, const Committed& committed);
  void on(const Event& event, const CopyExecuted& copied);
  void on(const Event& event, const LoadQueued& queued);
  void on(const Event& event, const LoadFinished& finished);
  void on(const Event& event, const OffloadQueued& queued);
  void on(const Event& event, const OffloadFinished& finished);
  void on(const Event& event, const NodeCreated& created);
  void on(const Event& event, const NodeSplit& split);
  void on(const Event& event, const NodeRemoved& removed);
  void on(const Event& event, const Evicted& evicted);
  void on(const Event& event, const LockTaken& taken);
  void on(const Event& event, const LockReleased& released);
  void on(const Event& event, const StoredFlagSet& flagged);
  void on(const Event& event, const RequestFinished&) { drop_copy(event.request); }
  void on(const Event& event, const RequestCancelled&) { drop_copy(event.request); }
  void on(const Event& event, const RequestRefused&) { drop_copy(event.request); }
  void on(const Event& event, const RequestRetracted&) { drop_copy(event.request); }
  void on(const Event& event, const RequestRestarted&) { drop_copy(event.request); }
  template <class Other>
  void on(const Event&, const Other&) {}

  RowRecord* find_row(Component component, Row row);
  void set_owner(Component component, Row row, RowOwner owner, RequestId request);
  void place(Component component, ContentId content, Row row);
  // Enters `row`, or the trap row for none, as what the tree has of `content`.
  void set_tree_row(Component component, ContentId content, Row row);
  void place_ranges(Component component, const RequestRecord& request,
                    std::span<const PageRange> ranges, std::span<const Row> rows);
  void name_new_nodes(const RequestRecord& request);
  LedgerNode& node_or_root(NodeId id);
  void count_lock(const LockRecord& lock, std::int64_t change);
  void count_swa_locks(ContentId tip, PageRange pages, std::int64_t change);
  // Tickets through the removed node cover no page from `begin` up any more.
  void uncover(NodeId removed, Pages begin);
  bool is_on_path(NodeId id, NodeId end) const;
  void refer(const TransferRecord& transfer, std::int64_t change);
  void refer(Component component, Row row, std::int64_t change);
  void drop_copy(RequestId request);
  TransferPart part_of(const TransferView& view, ContentId tip) const;

  const ContentTable& contents_;
  const RequestBook& requests_;
  TreeHoldings holdings_{*this};
  std::array<std::vector<RowRecord>, 3> rows_;
  std::array<Rows, 3> free_rows_;
  std::uint64_t allocations_ = 0;
  std::vector<TreePage> tree_;  // by content
  std::uint64_t holdings_digest_ = 0;
  std::vector<std::int32_t> swa_locks_;  // by content
  std::map<NodeId, LedgerNode> nodes_;
  std::vector<NodeId> unnamed_nodes_;  // created since the last INSERT was reported
  std::map<LockId, LockRecord> locks_;
  std::map<LoadId, TransferRecord> loads_;
  std::map<OffloadId, TransferRecord> offloads_;
  std::map<RequestId, PendingCopy> pending_copies_;
};

}  // namespace lockstep::oracle
