#include "oracle/boundary_checks.h"

#include <algorithm>

namespace lockstep::oracle {

namespace {

using oracle::text;

std::string text(PageRange range) {
  return "[" + std::to_string(range.begin.value()) + ", " + std::to_string(range.end.value()) + ")";
}

std::string text(std::span<const PageRange> ranges) {
  std::string all;
  for (const PageRange& range : ranges) all += (all.empty() ? "" : " ") + text(range);
  return all.empty() ? "nothing" : all;
}

std::string describe(const ContentTable& contents, const Geometry& geometry, ContentId content) {
  if (content == kNoContent) return "nothing known";
  return "the content of " + text(geometry.tokens(contents.pages(content))) + ", " +
         contents.hash(content).hex().substr(0, 12);
}

// The ranges in order, neighbours joined; overlaps stay visible.
std::vector<PageRange> merged(std::span<const PageRange> a, std::span<const PageRange> b) {
  std::vector<PageRange> ranges(a.begin(), a.end());
  ranges.insert(ranges.end(), b.begin(), b.end());
  std::sort(ranges.begin(), ranges.end());
  std::vector<PageRange> joined;
  for (const PageRange& range : ranges) {
    if (range.empty()) continue;
    if (!joined.empty() && joined.back().end == range.begin)
      joined.back().end = range.end;
    else
      joined.push_back(range);
  }
  return joined;
}

}  // namespace

void BoundaryChecks::before(const Event& event) {
  std::visit([&](const auto& body) { check(event, body); }, event.body);
}

void BoundaryChecks::after(const Event& event) {
  std::visit([&](const auto& body) { follow(event, body); }, event.body);
}

// ---------------------------------------------------------------- INSERT

void BoundaryChecks::check(const Event& event, const Inserted& inserted) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr) return;
  const Geometry& geometry = scene_.geometry();
  check_insert_label(event, inserted, *request);
  const Pages end = geometry.pages(inserted.end);
  const Pages cursor = geometry.pages_touched(inserted.cursor);
  const Pages full_begin = std::min(inserted.incoming, end);
  const Pages swa_begin = std::min(std::max(inserted.incoming, cursor), end);
  if (geometry.has_full) {
    check_partition(event, Component::full, {full_begin, end}, inserted.full_adopted,
                    inserted.full_duplicate, *request);
  }
  if (geometry.has_swa) {
    check_partition(event, Component::swa, {swa_begin, end}, inserted.swa_adopted,
                    inserted.swa_duplicate, *request);
  }
  if (inserted.cause != InsertCause::load) return;
  std::optional<OpenCommit>& open = open_[event.rank.index()];
  if (open) {
    scene_.findings.report("B11", event.rank, open->request, "COMMIT after INSERT",
                           "another INSERT of a load");
  }
  open = OpenCommit{event.request, inserted.state, inserted.mamba_exist, 0};
  surplus_[event.rank.index()] = inserted.mamba_exist ? inserted.state : kTrapRow;
}

void BoundaryChecks::check_insert_label(const Event& event, const Inserted& inserted,
                                        const RequestRecord& request) {
  const Geometry& geometry = scene_.geometry();
  const auto report = [&](std::string expected, std::string actual) {
    scene_.findings.report(
        "B4", event.rank, event.request, std::move(expected), std::move(actual),
        {.row = inserted.state == kTrapRow ? std::nullopt : std::optional(inserted.state)});
  };
  const bool is_load = inserted.cause == InsertCause::load;
  const Tokens fed = is_load ? inserted.end : request.fed;
  if (inserted.fed != fed) report("fed " + text(fed), "fed " + text(inserted.fed));
  if (inserted.end > fed)
    report("INSERT of at most the fed " + text(fed), "INSERT of " + text(inserted.end));
  if (!Geometry::on_grid(inserted.end, geometry.prefill_grid())) {
    report("INSERT ends at a multiple of " + text(geometry.prefill_grid()),
           "ends at " + text(inserted.end));
  }
  if (!geometry.has_mamba) return;
  if (inserted.state == kTrapRow)
    return report("a state at " + text(inserted.end), "no state came in");
  if (inserted.state_depth != inserted.end) {
    report("a state labelled " + text(inserted.end), "labelled " + text(inserted.state_depth));
  }
  const Tokens depth = scene_.ledger(event.rank).row(Component::mamba, inserted.state).depth;
  if (!is_load && depth != inserted.end) {
    report("a slot with the state after " + text(inserted.end),
           text(Component::mamba, inserted.state) + " holds the state after " + text(depth));
  }
}

void BoundaryChecks::check_partition(const Event& event, Component component, PageRange whole,
                                     std::span<const PageRange> adopted,
                                     std::span<const PageRange> duplicate,
                                     const RequestRecord& request) {
  const std::vector<PageRange> all = merged(adopted, duplicate);
  std::vector<PageRange> expected;
  if (!whole.empty()) expected.push_back(whole);
  if (all != expected) {
    scene_.findings.report("B9", event.rank, event.request,
                           std::string(name(component)) + " pages " + text(expected) +
                               " adopted or duplicate, each once",
                           "adopted " + text(adopted) + ", duplicate " + text(duplicate));
    return;
  }
  check_kept(event, component, adopted, false, request);
  check_kept(event, component, duplicate, true, request);
}

// The tree adopts what it lacks and keeps what it has.
void BoundaryChecks::check_kept(const Event& event, Component component,
                                std::span<const PageRange> ranges, bool in_tree,
                                const RequestRecord& request) {
  const RankLedger& ledger = scene_.ledger(event.rank);
  for (const PageRange& range : ranges) {
    for (Pages page = range.begin; page < range.end && page.index() < request.chain.size();
         ++page) {
      const Row row = ledger.tree_row(component, request.chain[page.index()]);
      if ((row != kTrapRow) == in_tree) continue;
      const std::string what =
          std::string(name(component)) + " page " + std::to_string(page.value());
      scene_.findings.report(
          "B9", event.rank, event.request, what + (in_tree ? " adopted" : " a duplicate"),
          what + (in_tree ? " a duplicate, but the tree has no row of it"
                          : " adopted, but the tree has " + text(component, row)));
      return;
    }
  }
}

// ---------------------------------------------------------------- between INSERT and COMMIT

void BoundaryChecks::check(const Event& event, const RowsFreed& freed) {
  if (freed.component != Component::mamba) return;
  std::optional<OpenCommit>& open = open_[event.rank.index()];
  for (Row row : freed.rows) {
    if (open && row == open->target) {
      ++open->frees;
    } else if (row != kTrapRow && row == surplus_[event.rank.index()] &&
               scene_.ledger(event.rank).row(Component::mamba, row).owner == RowOwner::free) {
      scene_.findings.report("B8", event.rank, event.request, "a surplus T freed once",
                             text(Component::mamba, row) + " freed again", {.row = row});
    }
  }
}

void BoundaryChecks::check(const Event& event, const AllocationFailed& failed) {
  const std::optional<OpenCommit>& open = open_[event.rank.index()];
  if (!open || open->request != event.request) return;
  scene_.findings.report("B11", event.rank, event.request,
                         "nothing fails between INSERT and the end of COMMIT",
                         "no " + std::string(name(failed.component)) + " row for " +
                             std::string(name(failed.purpose)));
}

void BoundaryChecks::check(const Event&, const StepBegun&) {
  for (std::size_t rank = 0; rank < open_.size(); ++rank) {
    if (!open_[rank]) continue;
    scene_.findings.report("B11", RankId{static_cast<std::uint32_t>(rank)}, open_[rank]->request,
                           "COMMIT after INSERT", "the step ended without COMMIT");
    open_[rank].reset();
  }
}

// ---------------------------------------------------------------- COMMIT

void BoundaryChecks::follow(const Event& event, const Committed& committed) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr) return;
  // One commit, however many ranks take part in it.
  if (event.rank == RankId{0} && committed.boundary > Tokens{0}) {
    ++scene_.verdict.tally.commits_verified;
  }
  const ContentId content = scene_.requests.content_at(*request, committed.boundary);
  check_boundary(event, committed, *request);
  check_rows(event, committed, *request);
  if (scene_.geometry().has_mamba) {
    if (committed.boundary > Tokens{0}) check_source(event, committed, content);
    check_private_slot(event, committed);
    check_surplus(event, committed);
  }
  open_[event.rank.index()].reset();
  CommitState state;
  state.id = committed.commit;
  state.boundary = committed.boundary;
  state.content = content;
  state.source = committed.source;
  state.q = committed.q;
  commits_[{event.rank, event.request}] = state;
}

void BoundaryChecks::check_boundary(const Event& event, const Committed& committed,
                                    const RequestRecord& request) {
  const Tokens boundary = committed.boundary;
  const auto report = [&](std::string expected, std::string actual) {
    scene_.findings.report("B1", event.rank, event.request, std::move(expected), std::move(actual));
  };
  if (!Geometry::on_grid(boundary, scene_.geometry().prefill_grid())) {
    report("a boundary on the grid of " + text(scene_.geometry().prefill_grid()), text(boundary));
  }
  if (boundary >= request.length()) {
    report("a boundary of at most " + text(request.length() - Tokens{1}), text(boundary));
  }
  const MatchRecord* match = scene_.matches.find(event.request);
  if (match == nullptr) return report("a MATCH before COMMIT", "none");
  const Tokens expected = match->expected_boundary();
  if (boundary == expected) return;
  const std::optional<GaveUp>& gave_up = match->gave_up;
  if (gave_up && gave_up->reason != GiveUp::none && gave_up->boundary == boundary) return;
  report("the largest boundary that every rank can restore, " + text(expected) +
             ", or a recorded reason",
         text(boundary) + (gave_up ? ", reason " + std::string(name(gave_up->reason))
                                   : std::string(", no reason")));
}

void BoundaryChecks::check_rows(const Event& event, const Committed& committed,
                                const RequestRecord& request) {
  const Geometry& geometry = scene_.geometry();
  const Pages end = std::min(geometry.pages(committed.boundary),
                             Pages{static_cast<std::int64_t>(request.chain.size())});
  const bool is_known =
      scene_.inspector(event.rank).request_rows(event.request, [&](const RequestRowsView& rows) {
        for (Pages page{0}; geometry.has_full && page < end; ++page) {
          check_row(event, "B2", Component::full, rows.full, page, request.chain[page.index()]);
        }
        for (Pages page = geometry.window_begin(committed.boundary); geometry.has_swa && page < end;
             ++page) {
          check_row(event, "B3", Component::swa, rows.swa, page, request.chain[page.index()]);
        }
        if (geometry.has_mamba && committed.boundary > Tokens{0} &&
            rows.pending_source != committed.source) {
          scene_.findings.report("B6", event.rank, event.request,
                                 "a pending copy from " + text(Component::mamba, committed.source),
                                 "from " + text(Component::mamba, rows.pending_source),
                                 {.row = rows.pending_source});
        }
      });
  if (!is_known && end > Pages{0}) {
    scene_.findings.report("B2", event.rank, event.request, "rows for [0, L)",
                           "the cache does not know the request");
  }
}

void BoundaryChecks::check_row(const Event& event, std::string_view invariant, Component component,
                               std::span<const Row> rows, Pages page, ContentId content) {
  const Row expected = scene_.ledger(event.rank).tree_row(component, content);
  const Row actual = page.index() < rows.size() ? rows[page.index()] : kTrapRow;
  if (actual == expected && actual != kTrapRow) return;
  const std::string of_page = " for page " + std::to_string(page.value());
  scene_.findings.report(invariant, event.rank, event.request,
                         "the tree's " + text(component, expected) + of_page,
                         text(component, actual) + of_page, {.row = actual});
}

void BoundaryChecks::check_source(const Event& event, const Committed& committed,
                                  ContentId content) {
  const RankLedger& ledger = scene_.ledger(event.rank);
  const Row canonical = ledger.tree_row(Component::mamba, content);
  const auto report = [&](std::string_view invariant, std::string expected, std::string actual) {
    scene_.findings.report(invariant, event.rank, event.request, std::move(expected),
                           std::move(actual), {.row = committed.source});
  };
  if (committed.source != canonical || canonical == kTrapRow) {
    report("B6",
           "COW source is the tree's " + text(Component::mamba, canonical) + " at " +
               text(committed.boundary),
           text(Component::mamba, committed.source));
  }
  if (committed.source == committed.q) {
    report("B6", "a COW source that is not the request's own slot",
           text(Component::mamba, committed.q) + " is both");
  }
  if (!ledger.is_state_locked(content)) {
    report("B6", "the COW source locked",
           "no open ticket covers " + text(Component::mamba, committed.source));
  }
  const LedgerNode* node = ledger.node(committed.node);
  if (node == nullptr || node->tip != content) {
    report("B6", "the canonical node at " + text(committed.boundary),
           text(committed.node) + (node == nullptr ? " is not in the tree" : " ends elsewhere"));
  }
  const RowRecord& source = ledger.row(Component::mamba, committed.source);
  if (source.owner == RowOwner::tree &&
      (source.content != content || source.depth != committed.boundary)) {
    report("B4",
           "the state after " + text(committed.boundary) + ": " +
               describe(scene_.contents, scene_.geometry(), content),
           "the state after " + text(source.depth) + ": " +
               describe(scene_.contents, scene_.geometry(), source.content));
  }
}

void BoundaryChecks::check_private_slot(const Event& event, const Committed& committed) {
  const RowRecord& q = scene_.ledger(event.rank).row(Component::mamba, committed.q);
  if (committed.q != kTrapRow && q.owner == RowOwner::request && q.request == event.request) return;
  const std::string owner =
      q.owner == RowOwner::request ? "another request" : std::string(name(q.owner));
  scene_.findings.report("B7", event.rank, event.request, "Q is owned by the request alone",
                         text(Component::mamba, committed.q) + " is owned by " + owner,
                         {.row = committed.q});
}

void BoundaryChecks::check_surplus(const Event& event, const Committed& committed) {
  const std::optional<OpenCommit>& open = open_[event.rank.index()];
  if (!open || open->request != event.request || !committed.from_load) return;
  const int expected = open->is_surplus ? 1 : 0;
  if (open->frees == expected) return;
  scene_.findings.report(
      "B8", event.rank, event.request,
      "T freed " + std::to_string(expected) + " times before COMMIT ends",
      text(Component::mamba, open->target) + " freed " + std::to_string(open->frees) + " times",
      {.row = open->target});
}

// ---------------------------------------------------------------- keys, landing, copy, first
// forward

void BoundaryChecks::follow(const Event& event, const LoadQueued& queued) {
  const auto load = scene_.ledger(event.rank).loads().find(queued.load);
  if (load == scene_.ledger(event.rank).loads().end()) return;
  for (std::size_t i = 0; i < queued.transfers.size(); ++i) {
    check_keys(event, queued.transfers[i], load->second.parts[i].contents);
  }
}

void BoundaryChecks::follow(const Event& event, const OffloadQueued& queued) {
  const RankLedger& ledger = scene_.ledger(event.rank);
  for (const TransferView& view : queued.transfers) {
    std::vector<ContentId> held;
    for (Row row : view.rows) held.push_back(ledger.row(view.component, row).content);
    check_keys(event, view, held);
  }
}

void BoundaryChecks::check_keys(const Event& event, const TransferView& view,
                                std::span<const ContentId> contents) {
  if (view.hashes.size() != view.rows.size()) {
    scene_.findings.report("B5", event.rank, event.request, "one hash per row",
                           std::to_string(view.hashes.size()) + " hashes for " +
                               std::to_string(view.rows.size()) + " rows");
    return;
  }
  for (std::size_t i = 0; i < view.rows.size(); ++i) {
    if (contents[i] == kNoContent) continue;
    const PageHash& expected = scene_.contents.hash(contents[i]);
    if (view.hashes[i] == expected) continue;
    scene_.findings.report(
        "B5", event.rank, event.request,
        text(view.component, view.rows[i]) + " under the hash of its last page, " + expected.hex(),
        view.hashes[i].hex(), {.row = view.rows[i]});
  }
}

void BoundaryChecks::check(const Event& event, const LoadFinished& finished) {
  const auto load = scene_.ledger(event.rank).loads().find(finished.load);
  if (!finished.good || load == scene_.ledger(event.rank).loads().end()) return;
  for (const TransferPart& part : load->second.parts) {
    if (part.component != Component::mamba) continue;
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      const ContentId expected = part.contents[i];
      if (expected == kNoContent) continue;
      const StoredObject* object =
          scene_.store.object(event.rank, part.component, scene_.contents.hash(expected));
      if (object == nullptr || object->content == expected) continue;
      scene_.findings.report(
          "B4", event.rank, load->second.request,
          "a state loaded from " + describe(scene_.contents, scene_.geometry(), expected),
          "from " + describe(scene_.contents, scene_.geometry(), object->content),
          {.row = part.rows[i]});
    }
  }
}

void BoundaryChecks::follow(const Event& event, const CopyExecuted& copied) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr || has_ended(request->phase)) return;
  const auto found = commits_.find({event.rank, event.request});
  const bool is_of_an_older =
      found != commits_.end() && (copied.commit < found->second.id || found->second.is_over);
  if (is_of_an_older) return;
  if (found == commits_.end() || found->second.boundary == Tokens{0}) {
    scene_.findings.report("B10", event.rank, event.request,
                           "a copy only after a COMMIT with a hit", "a copy without one");
    return;
  }
  CommitState& commit = found->second;
  if (++commit.copies > 1) {
    scene_.findings.report("B10", event.rank, event.request, "one copy per COMMIT",
                           std::to_string(commit.copies) + " copies");
  }
  if (copied.source != commit.source || copied.q != commit.q) {
    scene_.findings.report(
        "B6", event.rank, event.request,
        text(Component::mamba, commit.q) + " copied from " + text(Component::mamba, commit.source),
        text(Component::mamba, copied.q) + " copied from " + text(Component::mamba, copied.source),
        {.row = copied.source});
  }
  const RankLedger& ledger = scene_.ledger(event.rank);
  const bool is_in_place = ledger.tree_row(Component::mamba, commit.content) == copied.source;
  if (is_in_place && ledger.is_state_locked(commit.content)) return;
  scene_.findings.report("B6", event.rank, event.request,
                         "the COW source in the tree and locked until the copy has run",
                         text(Component::mamba, copied.source) +
                             (is_in_place ? " is not locked" : " is not the tree's state any more"),
                         {.row = copied.source});
}

void BoundaryChecks::leave_commit(RequestId request) {
  for (std::uint32_t rank = 0; rank < scene_.ledgers.size(); ++rank) {
    const auto found = commits_.find({RankId{rank}, request});
    if (found != commits_.end()) found->second.is_over = true;
  }
}

void BoundaryChecks::follow(const Event& event, const ForwardAccepted& accepted) {
  if (!scene_.geometry().has_mamba) return;
  for (const SegmentView& segment : accepted.segments) {
    const auto found = commits_.find({event.rank, segment.request});
    if (found == commits_.end() || found->second.has_run) continue;
    CommitState& commit = found->second;
    commit.has_run = true;
    if (commit.boundary == Tokens{0} || commit.copies > 0) continue;
    scene_.findings.report("B10", event.rank, segment.request,
                           "the copy before the first read of Q",
                           "the first forward was accepted without a copy", {.row = commit.q});
  }
}

void BoundaryChecks::follow(const Event& event, const CheckpointTracked& tracked) {
  const Tokens depth = scene_.ledger(event.rank).row(Component::mamba, tracked.slot).depth;
  if (depth == tracked.depth) return;
  scene_.findings.report("B4", event.rank, event.request,
                         text(Component::mamba, tracked.slot) + " labelled " + text(depth) +
                             ", as the forward wrote it",
                         "labelled " + text(tracked.depth), {.row = tracked.slot});
}

}  // namespace lockstep::oracle
