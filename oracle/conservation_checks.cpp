#include "oracle/conservation_checks.h"

#include <algorithm>

#include "oracle/rank_audit.h"

namespace lockstep::oracle {

namespace {

std::string owner_text(const RowRecord& row) {
  if (row.owner != RowOwner::request) return std::string(name(row.owner));
  return row.request == kNoRequest ? "a request" : "request " + std::to_string(row.request.value());
}

}  // namespace

void ConservationChecks::before(const Event& event) {
  std::visit([&](const auto& body) { check(event, body); }, event.body);
}

void ConservationChecks::audit(RankId rank, bool quiescent) {
  RankAudit(scene_, rank).run(quiescent);
}

void ConservationChecks::report_row(std::string_view invariant, const Event& event,
                                    Component component, Row row, std::string expected,
                                    std::string actual) {
  scene_.findings.report(invariant, event.rank, event.request,
                         text(component, row) + " " + std::move(expected), std::move(actual),
                         {.row = row});
}

void ConservationChecks::check(const Event& event, const RowsAllocated& allocated) {
  const RankLedger& ledger = scene_.ledger(event.rank);
  for (Row row : allocated.rows) {
    if (row == kTrapRow || row.index() >= ledger.row_count(allocated.component)) {
      report_row("C1", event, allocated.component, row, "never allocated", "allocated");
      continue;
    }
    const RowRecord& record = ledger.row(allocated.component, row);
    if (record.owner == RowOwner::free) continue;
    report_row("C1", event, allocated.component, row, "free when it is allocated",
               "owned by " + owner_text(record));
  }
}

void ConservationChecks::check(const Event& event, const RowsFreed& freed) {
  check_quarantined(event, freed);
  const RankLedger& ledger = scene_.ledger(event.rank);
  for (std::size_t i = 0; i < freed.rows.size(); ++i) {
    const Row row = freed.rows[i];
    const RowRecord& record = ledger.row(freed.component, row);
    const auto earlier = freed.rows.first(i);
    if (record.owner == RowOwner::free ||
        std::find(earlier.begin(), earlier.end(), row) != earlier.end()) {
      report_row("C2", event, freed.component, row, "on the free list once", "freed while free");
      continue;
    }
    if (record.owner == RowOwner::tree) {
      report_row("C1", event, freed.component, row, "freed by its owner",
                 "freed while it is owned by the tree");
    }
    if (record.references > 0) {
      report_row("C1", event, freed.component, row,
                 "free only when no transfer or pending copy refers to it",
                 std::to_string(record.references) + " references");
    }
  }
}

void ConservationChecks::check_quarantined(const Event& event, const RowsFreed& freed) {
  const RankLedger& ledger = scene_.ledger(event.rank);
  const bool is_none = std::ranges::none_of(freed.rows, [&](Row row) {
    return ledger.row(freed.component, row).owner == RowOwner::quarantined;
  });
  if (is_none) return;
  const auto refers = [&](const RequestRowsView& request, std::span<const Row> rows) {
    for (Row row : rows) {
      if (row == kTrapRow || std::ranges::find(freed.rows, row) == freed.rows.end()) continue;
      report_row("C1", event, freed.component, row, "in quarantine until no row list refers to it",
                 "freed while request " + std::to_string(request.request.value()) + " has it");
    }
  };
  scene_.inspector(event.rank).for_each_request([&](const RequestRowsView& request) {
    if (freed.component == Component::full) refers(request, request.full);
    if (freed.component == Component::swa) refers(request, request.swa);
    if (freed.component == Component::mamba) refers(request, {&request.pending_source, 1});
  });
}

void ConservationChecks::check(const Event& event, const RowsWithdrawn& withdrawn) {
  for (Row row : withdrawn.rows) {
    const RowRecord& record = scene_.ledger(event.rank).row(withdrawn.component, row);
    if (record.owner == RowOwner::free) continue;
    report_row("C1", event, withdrawn.component, row, "free when it leaves the pool",
               "owned by " + owner_text(record));
  }
}

void ConservationChecks::check(const Event& event, const Inserted& inserted) {
  for (Row row : inserted.full_adopted_rows) check_adopted(event, Component::full, row);
  for (Row row : inserted.swa_adopted_rows) check_adopted(event, Component::swa, row);
  if (inserted.state != kTrapRow && !inserted.mamba_exist)
    check_adopted(event, Component::mamba, inserted.state);
}

void ConservationChecks::check_adopted(const Event& event, Component component, Row row) {
  const RowRecord& record = scene_.ledger(event.rank).row(component, row);
  if (row != kTrapRow && record.owner == RowOwner::request && record.request == event.request)
    return;
  report_row("C1", event, component, row, "owned by the request that inserts it",
             row == kTrapRow ? "the trap row" : "owned by " + owner_text(record));
}

void ConservationChecks::check(const Event& event, const Evicted& evicted) {
  const RankLedger& ledger = scene_.ledger(event.rank);
  for (Row row : evicted.rows) {
    const RowRecord& record = ledger.row(evicted.component, row);
    if (record.owner != RowOwner::tree) {
      report_row("C1", event, evicted.component, row, "of the tree when it is evicted",
                 "owned by " + owner_text(record));
    } else if (evicted.cause != EvictionCause::roll_back &&
               is_locked(event.rank, evicted.node, evicted.component, row)) {
      report_row("C3", event, evicted.component, row, "unlocked when it is evicted",
                 "a ticket covers it");
    }
  }
}

bool ConservationChecks::is_locked(RankId rank, NodeId id, Component component, Row row) const {
  const RankLedger& ledger = scene_.ledger(rank);
  if (component == Component::swa) return ledger.swa_locks(ledger.row(component, row).content) > 0;
  const LedgerNode* node = ledger.node(id);
  if (node == nullptr) return false;
  return component == Component::full ? node->full_locks > 0 : node->state_locks > 0;
}

void ConservationChecks::check(const Event& event, const LockTaken& taken) {
  if (!scene_.ledger(event.rank).locks().contains(taken.lock)) return;
  scene_.findings.report("C3", event.rank, event.request, "a new ticket",
                         "ticket " + std::to_string(taken.lock.value()) + " is open already");
}

void ConservationChecks::check(const Event& event, const LockReleased& released) {
  if (scene_.ledger(event.rank).locks().contains(released.lock)) return;
  scene_.findings.report("C3", event.rank, event.request, "a ticket released once",
                         "ticket " + std::to_string(released.lock.value()) + " is not open");
}

void ConservationChecks::check(const Event& event, const LoadQueued& queued) {
  const bool unpublished = scene_.config.cache.publish == PublishPolicy::after_load;
  const RequestRecord* request = scene_.requests.find(event.request);
  for (const TransferView& view : queued.transfers) {
    if (unpublished) {
      check_unpublished(event, view);
      continue;
    }
    check_transfer(event, view, "load");
    if (request == nullptr) continue;
    for (std::size_t i = 0; i < view.rows.size(); ++i) {
      const Pages page = view.pages.begin + Pages{static_cast<std::int64_t>(i)};
      if (page.index() >= request->chain.size()) continue;
      const Row canonical =
          scene_.ledger(event.rank).tree_row(view.component, request->chain[page.index()]);
      if (canonical == view.rows[i]) continue;
      report_row("C1", event, view.component, view.rows[i],
                 "loads the page that the tree keeps in it",
                 "the tree keeps page " + std::to_string(page.value()) + " in " +
                     text(view.component, canonical));
    }
  }
}

void ConservationChecks::check_unpublished(const Event& event, const TransferView& view) {
  for (Row row : view.rows) {
    const RowRecord& record = scene_.ledger(event.rank).row(view.component, row);
    if (record.owner == RowOwner::request && record.request == event.request) continue;
    report_row("C1", event, view.component, row, "of the request until its load is published",
               "owned by " + owner_text(record));
  }
}

void ConservationChecks::check(const Event& event, const OffloadQueued& queued) {
  for (const TransferView& view : queued.transfers) check_transfer(event, view, "offload");
}

void ConservationChecks::check_transfer(const Event& event, const TransferView& view,
                                        std::string_view kind) {
  for (Row row : view.rows) {
    const RowRecord& record = scene_.ledger(event.rank).row(view.component, row);
    if (record.owner == RowOwner::tree) continue;
    report_row("C1", event, view.component, row,
               "of the tree when its " + std::string(kind) + " is queued",
               "owned by " + owner_text(record));
  }
}

}  // namespace lockstep::oracle
