#include "link/checkpoints.h"

#include <algorithm>

namespace lockstep {

std::vector<SnapshotView> CheckpointTracker::track_prefill(RequestState& request, Tokens start,
                                                           Tokens end) {
  std::vector<SnapshotView> snapshots;
  if (!rank_.has(Component::mamba)) return snapshots;
  for (Tokens depth : boundary_for(request, start, end)) {
    auto slot = allocator_.allocate(request.id, Component::mamba, Rows{1}, Purpose::tracking);
    if (!slot) break;
    snapshots.push_back({snapshot_at(depth, start, end), slot->row()});
    request.tracked.push_back({depth, std::move(*slot)});
  }
  std::ranges::sort(snapshots, {}, &SnapshotView::depth);
  std::ranges::sort(request.tracked, {}, &Checkpoint::depth);
  return snapshots;
}

std::vector<Tokens> CheckpointTracker::boundary_for(const RequestState& request, Tokens start,
                                                    Tokens end) const {
  const Tokens grid = rank_.geometry.prefill_grid();
  if (rank_.config.checkpoints == CheckpointPolicy::every) return all_multiples(start, end);
  std::vector<Tokens> depths;
  const Tokens branch = Geometry::floor_to(request.full_matched, grid);
  const bool inside = start < branch && branch < end;
  if (inside && branch > request.boundary && branch > request.deepest_state) {
    depths.push_back(branch);
  }
  const Tokens deepest = Geometry::floor_to(end, grid);
  if (deepest > start && (depths.empty() || deepest != depths.front())) depths.push_back(deepest);
  return depths;
}

std::vector<Tokens> CheckpointTracker::all_multiples(Tokens start, Tokens end) const {
  const Tokens grid = rank_.geometry.prefill_grid();
  std::vector<Tokens> depths;
  for (Tokens depth = Geometry::floor_to(start, grid) + grid; depth <= end; depth += grid) {
    depths.push_back(depth);
  }
  return depths;
}

std::vector<SnapshotView> CheckpointTracker::track_decode(RequestState& request, Tokens start,
                                                          Tokens end) {
  if (!rank_.has(Component::mamba)) return {};
  const Tokens grid = rank_.geometry.decode_grid();
  const bool drafted = end - start > Tokens{1};
  std::vector<SnapshotView> snapshots;
  for (Tokens reached = start + Tokens{1}; reached <= end; ++reached) {
    const Tokens depth = decoded_depth(reached);
    if (!Geometry::on_grid(depth, grid)) continue;
    if (!take_decode_slot(request, depth, drafted)) break;
    snapshots.push_back({reached, request.tracked.back().slot.row()});
  }
  return snapshots;
}

bool CheckpointTracker::take_decode_slot(RequestState& request, Tokens depth, bool drafted) {
  if (!drafted && std::ranges::count_if(request.tracked, &Checkpoint::decode) >= 2) {
    const std::size_t reused = alternate(request);
    Checkpoint checkpoint = std::move(request.tracked[reused]);
    request.tracked.erase(request.tracked.begin() + static_cast<std::ptrdiff_t>(reused));
    checkpoint.depth = depth;
    checkpoint.written = checkpoint.superseded = false;
    request.tracked.push_back(std::move(checkpoint));
    return true;
  }
  auto slot = allocator_.allocate(request.id, Component::mamba, Rows{1}, Purpose::tracking);
  if (!slot) return false;
  request.tracked.push_back({.depth = depth, .slot = std::move(*slot), .decode = true});
  return true;
}

void CheckpointTracker::drop_rejected(RequestState& request, Tokens end) {
  std::erase_if(request.tracked, [&](const Checkpoint& checkpoint) {
    return checkpoint.depth > end || (checkpoint.decode && checkpoint.superseded);
  });
}

Tokens CheckpointTracker::snapshot_at(Tokens depth, Tokens, Tokens) const {
  return depth;
}

std::size_t CheckpointTracker::alternate(const RequestState& request) const {
  const auto oldest = std::ranges::find_if(request.tracked, &Checkpoint::decode);
  return static_cast<std::size_t>(oldest - request.tracked.begin());
}

void CheckpointTracker::supersede(RequestState& request) {
  const auto newest =
      std::ranges::find_if(request.tracked.rbegin(), request.tracked.rend(), &Checkpoint::written);
  if (newest == request.tracked.rend() || !newest->decode) return;
  for (Checkpoint& checkpoint : request.tracked) {
    if (checkpoint.depth < newest->depth) checkpoint.superseded = true;
  }
}

void CheckpointTracker::written(RequestState& request, Tokens end) {
  for (Checkpoint& checkpoint : request.tracked) {
    if (checkpoint.written || checkpoint.depth > end) continue;
    checkpoint.written = true;
    rank_.emit(request.id, CheckpointTracked{checkpoint.depth, checkpoint.slot.row()});
  }
}

std::vector<Checkpoint> CheckpointTracker::donate_chunk_end(RequestState& request) {
  const Tokens inserted = rank_.geometry.tokens(request.own_from);
  std::vector<Checkpoint> donated;
  std::vector<Checkpoint> kept;
  for (Checkpoint& checkpoint : request.tracked) {
    const bool useful = checkpoint.written && checkpoint.depth > inserted;
    (useful ? donated : kept).push_back(std::move(checkpoint));
  }
  request.tracked = std::move(kept);
  return donated;
}

std::optional<Checkpoint> CheckpointTracker::donate_newest(RequestState& request, Tokens fed) {
  const Tokens inserted = rank_.geometry.tokens(request.own_from);
  for (auto it = request.tracked.rbegin(); it != request.tracked.rend(); ++it) {
    if (!it->written || it->depth <= inserted || it->depth > insertable(fed)) continue;
    Checkpoint newest = std::move(*it);
    request.tracked.erase(std::next(it).base());
    return newest;
  }
  return std::nullopt;
}

}  // namespace lockstep
