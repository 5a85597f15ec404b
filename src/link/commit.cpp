#include "link/commit.h"

#include "link/stored_flags.h"
#include "link/tables.h"

namespace lockstep {

void CommitPhase::commit_load(RequestState& request, Tokens boundary, const InsertOutcome& inserted,
                              std::optional<LoadId> load) {
  Node& node = *inserted.node;
  begin(request, boundary);
  point_at_canonical(request, node);
  if (rank_.has(Component::mamba)) {
    release_surplus(request, inserted);
    take_private_slot(request);
    adopt_state(request, node, choose_source(request, node));
  }
  report(request, node, inserted.mamba_exist, true);
  if (!load) return flag_proved(rank_, node, rank_.geometry.pages(request.device_hit));
  std::vector<Transfer> transfers = keep_adopted(request, inserted, boundary);
  if (transfers.empty()) return;
  LockTicket endpoint =
      rank_.tree.lock(request.id, node, LockHolder::load, rank_.tree.window_of(node));
  const Pages begin = rank_.geometry.pages(request.device_hit);
  loads_.queue(*load, request.id, begin, boundary, std::move(transfers), std::move(endpoint));
}

void CommitPhase::queue_unpublished(RequestState& request, Tokens boundary, LoadId load) {
  const Pages begin = rank_.geometry.pages(request.device_hit);
  const Pages end = rank_.geometry.pages(boundary);
  const std::span<const PageHash> hashes(request.hashes);
  const LoadRows& rows = request.load;
  std::vector<Transfer> transfers;
  const auto add_pages = [&](Component component, const OwnedRows& owned) {
    if (owned.empty()) return;
    const PageRange range{end - Pages{owned.size().value()}, end};
    const auto named = hashes.subspan(range.begin.index(), range.size().index());
    const std::span<const Row> taken = owned.rows();
    transfers.push_back(planner_.pages(component, named, range, {taken.begin(), taken.end()}));
  };
  add_pages(Component::full, rows.full);
  add_pages(Component::swa, rows.swa);
  if (!rows.state.empty()) {
    const auto run = hashes.subspan(begin.index(), (end - begin).index());
    transfers.push_back(planner_.state(run, end, rows.state.row()));
  }
  request.filling = load;
  loads_.queue(load, request.id, begin, boundary, std::move(transfers), {});
}

void CommitPhase::commit_hit(RequestState& request) {
  CHECK("commit.hit_has_a_node", request.node != nullptr);
  Node& node = *request.node;
  begin(request, request.device_hit);
  point_at_canonical(request, node);
  if (rank_.has(Component::mamba)) adopt_state(request, node, choose_source(request, node));
  report(request, node, false, false);
}

void CommitPhase::commit_empty(RequestState& request) {
  begin(request, Tokens{0});
  request.clear_pending = rank_.has(Component::mamba);
  const Row q = request.q.empty() ? kTrapRow : request.q.row();
  rank_.emit(request.id,
             Committed{Tokens{0}, Tokens{0}, NodeId{0}, kTrapRow, q, false, false, request.commit});
}

void CommitPhase::begin(RequestState& request, Tokens boundary) {
  request.boundary = request.fed = boundary;
  request.commit = CommitId{next_commit_++};
}

void CommitPhase::release_surplus(RequestState& request, const InsertOutcome& inserted) {
  if (inserted.mamba_exist) request.load.state.release();
}

void CommitPhase::take_private_slot(RequestState& request) {
  if (!request.q.empty()) return;
  if (!request.load.private_slot.empty()) {
    request.q = std::move(request.load.private_slot);
    return;
  }
  RowPool& pool = rank_.pools.pool(Component::mamba);
  std::optional<OwnedRows> slot = pool.allocate(request.id, Rows{1}, Purpose::private_slot);
  if (slot) {
    request.q = std::move(*slot);
  } else {
    rank_.emit(request.id,
               AllocationFailed{Component::mamba, Purpose::private_slot, Rows{1}, pool.free(),
                                rank_.tree.evictable(Component::mamba), false});
  }
}

Row CommitPhase::choose_source(const RequestState&, const Node& canonical) const {
  return canonical.state;
}

void CommitPhase::adopt_state(RequestState& request, Node& canonical, Row source) {
  const PageRange no_window{canonical.end(), canonical.end()};
  request.pending_copy =
      PendingCopy{source, rank_.tree.lock(request.id, canonical, LockHolder::copy, no_window)};
}

std::vector<Transfer> CommitPhase::keep_adopted(const RequestState& request,
                                                const InsertOutcome& inserted,
                                                Tokens boundary) const {
  std::vector<Transfer> transfers;
  const auto keep_pages = [&](Component component, const std::vector<PageRange>& ranges,
                              const std::vector<Row>& rows) {
    auto next = rows.begin();
    for (const PageRange& range : ranges) {
      const auto end = next + static_cast<std::ptrdiff_t>(range.size().index());
      const auto named =
          std::span(request.hashes).subspan(range.begin.index(), range.size().index());
      transfers.push_back(planner_.pages(component, named, range, {next, end}));
      next = end;
    }
  };
  keep_pages(Component::full, inserted.full_adopted, inserted.full_adopted_rows);
  keep_pages(Component::swa, inserted.swa_adopted, inserted.swa_adopted_rows);
  if (inserted.state_adopted) {
    const Pages end = rank_.geometry.pages(boundary);
    const Pages begin = rank_.geometry.pages(request.device_hit);
    const auto run = std::span(request.hashes).subspan(begin.index(), (end - begin).index());
    transfers.push_back(planner_.state(run, end, inserted.node->state));
  }
  return transfers;
}

void CommitPhase::point_at_canonical(RequestState& request, Node& node) {
  point_at_tree(rank_, request, node, Pages{0});
}

void CommitPhase::report(const RequestState& request, const Node& node, bool mamba_exist,
                         bool from_load) {
  const Row source = request.pending_copy ? request.pending_copy->source : kTrapRow;
  const Row q = request.q.empty() ? kTrapRow : request.q.row();
  rank_.emit(request.id, Committed{request.device_hit, request.boundary, node.id, source, q,
                                   mamba_exist, from_load, request.commit});
}

}  // namespace lockstep
