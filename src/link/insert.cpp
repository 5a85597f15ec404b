#include "link/insert.h"

#include <algorithm>

#include "link/tables.h"

namespace lockstep {

namespace {

// Rows of pages [from, end) out of the request's own ones and the rest that stays behind.
OwnedRows take_pages(OwnedRows& own, Pages from, Pages end) {
  const Pages count = std::max(Pages{0}, end - from);
  return own.take_front(std::min(Rows{count.value()}, own.size()));
}

// SWA rows of pages [from, end); LOAD took rows for the last pages only.
std::vector<Row> mapped_rows(const OwnedRows& taken, Pages from, Pages end) {
  std::vector<Row> rows((end - from).index(), kTrapRow);
  const std::size_t count = std::min(rows.size(), taken.size().index());
  std::ranges::copy(taken.rows().last(count), rows.end() - static_cast<std::ptrdiff_t>(count));
  return rows;
}

}  // namespace

void InsertPhase::prepare(RequestState& request, Tokens boundary) {
  const Geometry& geometry = rank_.geometry;
  const Tokens window_begin = geometry.tokens(geometry.window_begin(boundary));
  request.swa_cursor = std::max(request.swa_cursor, window_begin);
  rank_.emit(request.id, Prepared{request.swa_cursor});
}

InsertOutcome InsertPhase::insert_load(RequestState& request, Tokens boundary,
                                       std::optional<LoadId> load) {
  const Geometry& geometry = rank_.geometry;
  const Pages end = geometry.pages(boundary);
  const Pages begin = geometry.pages(request.device_hit);
  LoadRows& rows = request.load;
  IncomingRows incoming;
  incoming.hashes = std::span(request.hashes).first(end.index());
  incoming.full_from = begin;
  incoming.full = rows.full.rows();
  incoming.swa_from = std::clamp(geometry.pages(request.swa_cursor), begin, end);
  const std::vector<Row> swa = mapped_rows(rows.swa, incoming.swa_from, end);
  incoming.swa = swa;
  incoming.state = rows.state.empty() ? kTrapRow : rows.state.row();
  const InsertOutcome outcome = rank_.tree.insert(request.namespace_hash, incoming, load);

  Inserted event;
  event.cause = InsertCause::load;
  event.end = boundary;
  event.fed = boundary;
  event.incoming = begin;
  event.cursor = geometry.tokens(incoming.swa_from);
  event.state = incoming.state;
  event.state_depth = boundary;
  report(request, outcome, event);
  // From here on the tree owns the rows, or has freed them; a duplicate state is COMMIT's to free.
  rows.full.disown();
  rows.swa.disown();
  if (outcome.state_adopted) rows.state.disown();
  rank_.tree.free_duplicates(outcome);
  return outcome;
}

void InsertPhase::insert_own(RequestState& request, Checkpoint checkpoint, Tokens fed,
                             InsertCause cause) {
  const Geometry& geometry = rank_.geometry;
  const Pages end = geometry.pages(checkpoint.depth);
  CHECK("insert.pages_are_named", end.index() <= request.hashes.size());
  IncomingRows incoming;
  incoming.hashes = std::span(request.hashes).first(end.index());
  incoming.full_from = request.own_from;
  OwnedRows full = take_pages(request.own_full, request.own_from, end);
  incoming.full = full.rows();
  incoming.swa_from = std::min(request.swa_own_from, end);
  OwnedRows swa = take_pages(request.own_swa, incoming.swa_from, end);
  incoming.swa = swa.rows();
  CHECK("insert.own_rows_reach_the_end",
        full.size() == Rows{(end - incoming.full_from).value()} &&
            (!geometry.has_swa || swa.size() == Rows{(end - incoming.swa_from).value()}));
  incoming.state = checkpoint.slot.empty() ? kTrapRow : checkpoint.slot.row();
  const InsertOutcome outcome = rank_.tree.insert(request.namespace_hash, incoming, std::nullopt);

  Inserted event;
  event.cause = cause;
  event.end = checkpoint.depth;
  event.fed = fed;
  event.incoming = incoming.full_from;
  event.cursor = geometry.tokens(incoming.swa_from);
  event.state = incoming.state;
  event.state_depth = checkpoint.depth;
  report(request, outcome, event);
  full.disown();
  swa.disown();
  if (outcome.state_adopted) checkpoint.slot.disown();
  rank_.tree.free_duplicates(outcome);
  checkpoint.slot.release();  // a duplicate

  point_at_tree(rank_, request, *outcome.node, request.own_from);
}

void InsertPhase::report(const RequestState& request, const InsertOutcome& outcome,
                         Inserted event) {
  event.node = outcome.node->id;
  event.full_adopted = outcome.full_adopted;
  event.full_duplicate = outcome.full_duplicate;
  event.swa_adopted = outcome.swa_adopted;
  event.swa_duplicate = outcome.swa_duplicate;
  event.full_adopted_rows = outcome.full_adopted_rows;
  event.swa_adopted_rows = outcome.swa_adopted_rows;
  event.mamba_exist = outcome.mamba_exist;
  rank_.emit(request.id, event);
}

}  // namespace lockstep
