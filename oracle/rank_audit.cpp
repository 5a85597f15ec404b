#include "oracle/rank_audit.h"

#include <algorithm>

namespace lockstep::oracle {

RankAudit::RankAudit(const Scene& scene, RankId rank)
    : scene_(scene), rank_(rank), inspector_(scene.inspector(rank)), ledger_(scene.ledger(rank)) {}

void RankAudit::report(std::string_view invariant, std::string expected, std::string actual,
                       RequestId request, Where where) {
  scene_.findings.report(invariant, rank_, request, std::move(expected), std::move(actual), where);
}

void RankAudit::run(bool quiescent) {
  for (Component component : kComponents) {
    rows_[index(component)].resize(ledger_.row_count(component));
    if (!inspector_.has(component)) continue;
    count_free(component);
    count_withdrawn(component);
  }
  inspector_.for_each_node([&](const NodeView& node) { visit_node(node); });
  inspector_.for_each_request([&](const RequestRowsView& request) { visit_request(request); });
  inspector_.for_each_transfer([&](const TransferRowsView& transfer) { visit_transfer(transfer); });
  for (Component component : kComponents) {
    if (!inspector_.has(component)) continue;
    check_owners(component);
    check_balance(component);
  }
  check_tickets();
  check_states_kept();
  if (quiescent) check_quiescent();
}

void RankAudit::count(Component component, Row row, Kind kind) {
  std::vector<RowCount>& rows = rows_[index(component)];
  if (row == kTrapRow || row.index() >= rows.size()) {
    report("C1", "a row of the pool", text(component, row), kNoRequest, {.row = row});
    return;
  }
  RowCount& counted = rows[row.index()];
  if (counted.owners < 255) ++counted.owners;
  counted.kinds |= kind;
}

void RankAudit::count_free(Component component) {
  const std::vector<Row> free = inspector_.free_rows(component);
  for (Row row : free) {
    if (row.index() < rows_[index(component)].size() &&
        (rows_[index(component)][row.index()].kinds & kFree) != 0) {
      report("C2", text(component, row) + " on the free list once", "more than once", kNoRequest,
             {.row = row});
      continue;
    }
    count(component, row, kFree);
  }
}

void RankAudit::count_withdrawn(Component component) {
  for (Row row : inspector_.withdrawn_rows(component)) {
    count(component, row, kWithdrawn);
    if (ledger_.row(component, row).owner == RowOwner::withdrawn) continue;
    report("C1", text(component, row) + " withdrawn only as reported",
           "owned by " + std::string(name(ledger_.row(component, row).owner)), kNoRequest,
           {.row = row});
  }
}

// ---------------------------------------------------------------- nodes

void RankAudit::visit_node(const NodeView& node) {
  const LedgerNode* known = ledger_.node(node.id);
  const Pages end = node.begin + Pages{static_cast<std::int64_t>(node.hashes.size())};
  for (Row row : node.full) count(Component::full, row, kTree);
  for (Row row : node.swa) {
    if (row != kTrapRow) count(Component::swa, row, kTree);
  }
  if (node.state != kTrapRow) count(Component::mamba, node.state, kTree);
  if (node.offload_pending) ++pending_marks_;
  if (!node.is_root) {
    check_shape(node);
    if (known == nullptr || known->tip == kNoContent) {
      report("C6", "only nodes whose creation was reported", text(node.id));
    } else {
      check_contents(node, *known);
      check_state(node, *known);
    }
  }
  check_locks(node, known);
  seen_[node.id] = {end, node.state != kTrapRow, node.is_root || node.full_stored};
}

void RankAudit::check_shape(const NodeView& node) {
  const auto parent = seen_.find(node.parent);
  const Geometry& geometry = scene_.geometry();
  const std::size_t pages = std::max({node.hashes.size(), node.full.size(), node.swa.size()});
  if (pages == 0) report("C6", text(node.id) + " holds at least one page", "none");
  if (node.hashes.size() != pages) {
    report("C6", text(node.id) + " has one hash per page, " + std::to_string(pages),
           std::to_string(node.hashes.size()));
  }
  if (parent != seen_.end() && parent->second.end != node.begin) {
    report("C6",
           text(node.id) + " begins where its parent ends, at page " +
               std::to_string(parent->second.end.value()),
           "at page " + std::to_string(node.begin.value()));
  }
  if (node.full_stored && parent != seen_.end() && !parent->second.is_flagged) {
    report("S2", "flagged ancestors of " + text(node.id), text(node.parent) + " is not flagged");
  }
  const bool is_free_leaf = node.children == 0 && node.full_locks == 0;
  if (geometry.has_mamba && is_free_leaf && node.state == kTrapRow) {
    report("C6", text(node.id) + ", unlocked and without children, has a state", "none");
  }
}

void RankAudit::check_contents(const NodeView& node, const LedgerNode& known) {
  const std::size_t pages = node.hashes.size();
  if (pages != static_cast<std::size_t>((known.end - known.begin).value()) ||
      node.begin != known.begin) {
    report("C6",
           text(node.id) + " spans pages " + std::to_string(known.begin.value()) + " to " +
               std::to_string(known.end.value()),
           std::to_string(pages) + " pages from " + std::to_string(node.begin.value()));
    return;
  }
  ContentId content = known.tip;
  for (std::size_t offset = pages; offset-- > 0; content = scene_.contents.parent(content)) {
    if (node.hashes[offset] != scene_.contents.hash(content)) {
      report("C6",
             "page " + std::to_string(node.begin.value() + static_cast<std::int64_t>(offset)) +
                 " of " + text(node.id) + " under hash " + scene_.contents.hash(content).hex(),
             node.hashes[offset].hex());
    }
    if (scene_.geometry().has_full) {
      check_page(node, Component::full, offset,
                 offset < node.full.size() ? node.full[offset] : kTrapRow, content);
    }
    if (scene_.geometry().has_swa) {
      check_page(node, Component::swa, offset,
                 offset < node.swa.size() ? node.swa[offset] : kTrapRow, content);
    }
    if (offset < node.swa_locks.size() && node.swa_locks[offset] != ledger_.swa_locks(content)) {
      report("C3",
             std::to_string(ledger_.swa_locks(content)) + " SWA locks on page " +
                 std::to_string(node.begin.value() + static_cast<std::int64_t>(offset)) + " of " +
                 text(node.id),
             std::to_string(node.swa_locks[offset]));
    }
  }
}

void RankAudit::check_page(const NodeView& node, Component component, std::size_t offset,
                           Row actual, ContentId content) {
  const Row expected = ledger_.tree_row(component, content);
  if (actual == expected && (actual != kTrapRow || component == Component::swa)) return;
  report("C1",
         text(component, expected) + " at page " +
             std::to_string(node.begin.value() + static_cast<std::int64_t>(offset)) + " of " +
             text(node.id),
         text(component, actual), kNoRequest, {.row = actual});
}

void RankAudit::check_state(const NodeView& node, const LedgerNode& known) {
  const Geometry& geometry = scene_.geometry();
  if (node.state == kTrapRow) return;
  const RowRecord& record = ledger_.row(Component::mamba, node.state);
  const Tokens end = geometry.tokens(known.end);
  if (record.content != known.tip) {
    const Tokens depth = record.content == kNoContent
                             ? record.depth
                             : geometry.tokens(scene_.contents.pages(record.content));
    report("B4", text(node.id) + " carries the state after " + text(end),
           text(Component::mamba, node.state) + ", the state after " + text(depth), kNoRequest,
           {.row = node.state});
    return;
  }
  if (!Geometry::on_grid(end, geometry.prefill_grid())) {
    report("C6", "a state on the grid of " + text(geometry.prefill_grid()),
           text(node.id) + " at " + text(end));
  }
  if (!geometry.has_swa) return;
  ContentId content = known.tip;
  for (Pages page = known.end; page > geometry.window_begin(end);
       page -= Pages{1}, content = scene_.contents.parent(content)) {
    if (ledger_.tree_row(Component::swa, content) != kTrapRow) continue;
    report("C6", text(node.id) + " has a state at " + text(end) + " and the SWA rows of its window",
           "no SWA row for page " + std::to_string(page.value() - 1));
    return;
  }
}

void RankAudit::check_locks(const NodeView& node, const LedgerNode* known) {
  const std::int64_t full = known == nullptr ? 0 : known->full_locks;
  const std::int64_t state = known == nullptr ? 0 : known->state_locks;
  if (node.full_locks != full) {
    report("C3", std::to_string(full) + " tickets at or below " + text(node.id),
           "FULL lock count " + std::to_string(node.full_locks));
  }
  if (node.state_locks != state) {
    report("C3", std::to_string(state) + " tickets on the state of " + text(node.id),
           "MAMBA lock count " + std::to_string(node.state_locks));
  }
}

// ---------------------------------------------------------------- requests and transfers

void RankAudit::visit_request(const RequestRowsView& request) {
  const auto visit_pages = [&](Component component, std::span<const Row> rows, Pages own_from) {
    for (std::size_t page = 0; page < rows.size(); ++page) {
      if (rows[page] == kTrapRow) continue;
      if (page >= own_from.index())
        own(request.request, component, rows[page]);
      else
        check_reference(component, rows[page], "the row list", request.request);
    }
  };
  visit_pages(Component::full, request.full, request.full_own_from);
  visit_pages(Component::swa, request.swa, request.swa_own_from);
  if (request.q != kTrapRow) own(request.request, Component::mamba, request.q);
  for (const SnapshotView& tracked : request.tracked) {
    if (tracked.slot != kTrapRow) own(request.request, Component::mamba, tracked.slot);
  }
  for (const SnapshotView& column : request.columns) {
    own(request.request, Component::mamba, column.slot);
  }
  if (request.pending_source != kTrapRow) {
    check_reference(Component::mamba, request.pending_source, "a pending copy", request.request);
  }
}

void RankAudit::own(RequestId request, Component component, Row row) {
  ++held_rows_;
  count(component, row, kRequest);
  const RowRecord& record = ledger_.row(component, row);
  if (record.owner == RowOwner::request && record.request == request) return;
  report("C1", text(component, row) + " owned by the request that holds it",
         "owned by " + (record.owner == RowOwner::request ? "another request"
                                                          : std::string(name(record.owner))),
         request, {.row = row});
}

void RankAudit::visit_transfer(const TransferRowsView& transfer) {
  for (Row row : transfer.rows) {
    if (transfer.owned) {
      ++held_rows_;
      count(transfer.component, row, kTransfer);
    } else {
      check_reference(transfer.component, row, transfer.is_load ? "a load" : "an offload",
                      kNoRequest);
    }
  }
}

void RankAudit::check_reference(Component component, Row row, std::string_view holder,
                                RequestId request) {
  const std::vector<RowCount>& rows = rows_[index(component)];
  const bool is_in_use =
      row.index() < rows.size() && (rows[row.index()].kinds & (kFree | kWithdrawn)) == 0;
  if (!is_in_use) {
    return report("C1", std::string(holder) + " refers to rows in use",
                  text(component, row) + " is free", request, {.row = row});
  }
  // A load may still fill a quarantined row; whoever reads one was to start again.
  if (request == kNoRequest || ledger_.row(component, row).owner != RowOwner::quarantined) return;
  report("C1", std::string(holder) + " refers to no row in quarantine", text(component, row),
         request, {.row = row});
}

// ---------------------------------------------------------------- sums

void RankAudit::check_owners(Component component) {
  const std::vector<RowCount>& rows = rows_[index(component)];
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if ((rows[i].kinds & kTree) != 0) ++tree_rows_[index(component)];
    const Row row{static_cast<std::uint32_t>(i)};
    if (rows[i].owners != 1) {
      report("C1", text(component, row) + " has one owner",
             std::to_string(rows[i].owners) + " owners", kNoRequest, {.row = row});
      continue;
    }
    const bool is_free = ledger_.row(component, row).owner == RowOwner::free;
    if (is_free != ((rows[i].kinds & kFree) != 0)) {
      report("C1", text(component, row) + (is_free ? " free, as reported" : " in use, as reported"),
             is_free ? "it is in use" : "it is on the free list", kNoRequest, {.row = row});
    }
  }
}

// free + evictable + protected + request + transfer + withdrawn = total, with the linker's own free
// and evictable counts and the ledger's locks.
void RankAudit::check_balance(Component component) {
  const std::vector<RowCount>& rows = rows_[index(component)];
  const auto of_kind = [&](Kind kind) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const RowCount& row) { return (row.kinds & kind) != 0; });
  };
  const std::int64_t evictable = inspector_.evictable_rows(component).value();
  const std::int64_t protected_rows =
      tree_rows_[index(component)].value() - ledger_.evictable_rows(component).value();
  const std::int64_t free = static_cast<std::int64_t>(inspector_.free_rows(component).size());
  const std::int64_t held = of_kind(kRequest) + of_kind(kTransfer);
  const std::int64_t withdrawn = of_kind(kWithdrawn);
  const std::int64_t total = inspector_.capacity(component).value();
  if (free + evictable + protected_rows + held + withdrawn == total) return;
  report("C4", std::string(name(component)) + " rows: " + std::to_string(total) + " in all",
         std::to_string(free) + " free + " + std::to_string(evictable) + " evictable + " +
             std::to_string(protected_rows) + " protected + " + std::to_string(held) +
             " of requests and transfers + " + std::to_string(withdrawn) + " withdrawn");
}

void RankAudit::check_tickets() {
  for (const auto& [id, lock] : ledger_.locks()) {
    const std::string ticket = "ticket " + std::to_string(id.value());
    if (!seen_.contains(lock.node) && !outlives_node(lock.node)) {
      report("C3", ticket + " on a node of the tree", text(lock.node) + " is not there",
             lock.request);
    }
    if (is_held(lock)) continue;
    report("C3", ticket + " held by " + std::string(name(lock.holder)) + " given back with it",
           "what held it has ended", lock.request);
  }
}

// The roll-back of one load takes out a node that another load, or a put, still has a ticket on.
bool RankAudit::outlives_node(NodeId id) const {
  const auto found = ledger_.nodes().find(id);
  return found != ledger_.nodes().end() && found->second.removed && found->second.rolled_back;
}

// Whether what the ticket was taken for goes on.
bool RankAudit::is_held(const LockRecord& lock) const {
  if (lock.holder == LockHolder::load) {
    return std::ranges::any_of(
        ledger_.loads(), [&](const auto& load) { return load.second.request == lock.request; });
  }
  if (lock.holder == LockHolder::offload) {
    return std::ranges::any_of(
        ledger_.offloads(), [&](const auto& offload) { return offload.second.node == lock.node; });
  }
  const RequestRecord* request = scene_.requests.find(lock.request);
  return request != nullptr && !has_ended(request->phase);
}

void RankAudit::check_states_kept() {
  for (const auto& [id, node] : ledger_.nodes()) {
    const Row state = node.removed || node.tip == kNoContent
                          ? kTrapRow
                          : ledger_.tree_row(Component::mamba, node.tip);
    if (state == kTrapRow) continue;
    const auto seen = seen_.find(id);
    if (seen != seen_.end() && seen->second.has_state) continue;
    report("R2", text(id) + " keeps the state that was inserted there",
           "it has none, and no eviction was reported", kNoRequest, {.row = state});
  }
}

void RankAudit::check_quiescent() {
  const auto expect_none = [&](std::size_t count, std::string_view what) {
    if (count > 0)
      report("C5", "no " + std::string(what) + " at quiescence", std::to_string(count));
  };
  expect_none(ledger_.locks().size(), "open lock ticket");
  expect_none(std::max(ledger_.loads().size(), inspector_.pending_loads()), "load");
  expect_none(std::max(ledger_.offloads().size(), inspector_.pending_offloads()), "offload");
  expect_none(ledger_.pending_copies().size(), "pending copy");
  expect_none(pending_marks_, "pending offload mark");
  expect_none(held_rows_, "row held by a request or a transfer");
}

}  // namespace lockstep::oracle
