// Step 7 of an engine step: which tokens the next forward computes, and the pages for them
// (semantics 2, 4).
#include <algorithm>
#include <iterator>

#include "engine/engine.h"

namespace lockstep::engine {

void Engine::launch_forward() {
  auto forward = std::make_shared<Forward>();
  forward->ranks.resize(ranks_.size());
  plan_decodes(*forward);
  plan_prefills(*forward);
  if (forward->segments.empty()) {
    const bool stuck = in_flight_.empty() && !transfers_pending();
    if (stuck && youngest_running() != nullptr) free_pages();
    return;
  }
  nothing_planned_ = false;
  launch(forward);
  // There may be another one to plan behind it.
  if (may_launch()) dirty_ = true;
}

void Engine::launch(const std::shared_ptr<Forward>& forward) {
  forward->id = ForwardId{next_forward_++};
  forward->ranks_to_go = ranks_.size();
  in_flight_.push_back(forward);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::vector<SegmentView> views = forward->view(rank);
    sink_.emit(RankId{static_cast<std::uint32_t>(rank)}, kNoRequest,
               ForwardLaunched{forward->id, views});
    ranks_[rank].executor->begin(forward, rank);
  }
  for (std::uint32_t i = 0; i < model_.layers().size(); ++i) launch_layer(forward, LayerId{i});
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const DeviceEvent done = ranks_[rank].executor->end(forward, rank);
    ranks_[rank].device->on_reached(done, [forward] { --forward->ranks_to_go; });
  }
}

void Engine::launch_layer(const std::shared_ptr<Forward>& forward, LayerId layer) {
  std::vector<DeviceEvent> heads;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    Executor& executor = *ranks_[rank].executor;
    if (executor.has_shard()) {
      heads.push_back(executor.run_heads(forward, rank, layer, *ranks_[rank].cache));
    } else {
      executor.run_layer(forward, rank, layer, *ranks_[rank].cache);
    }
  }
  for (std::size_t rank = 0; rank < heads.size(); ++rank) {
    ranks_[rank].executor->combine_heads(forward, rank, layer, heads);
  }
}

bool Engine::can_move(const Request& request) const {
  return request.phase == Phase::running && !request.held && request.fed < request.length();
}

void Engine::plan_decodes(Forward& forward) {
  for (auto& [id, request] : requests_) {
    if (!can_move(request) || !request.decoding() || request.planned == request.coming()) continue;
    // Nobody makes room for a token that nothing comes from.
    const bool granted =
        request.overshoots() ? reserve(request, Tokens{1}) == Tokens{1} : reserve_decode(request);
    if (granted) plan(forward, request, Tokens{1}, draft(request));
  }
}

std::vector<TokenId> Engine::draft(Request& request) {
  // The token that comes before the guesses must be known, and the last token is not fed.
  const bool knows = request.planned + Tokens{1} == request.length();
  const Tokens most = request.target - request.length() - Tokens{1};
  if (drafter_ == nullptr || !knows || most <= Tokens{0}) return {};
  std::vector<TokenId> drafts = drafter_->propose(request);
  Tokens count = std::min(most, Tokens{static_cast<std::int64_t>(drafts.size())});
  if (count > Tokens{0}) count = reserve(request, count + Tokens{1}) - Tokens{1};
  bool agreed = true;
  Tokens granted = count;
  for (const RankUnit& rank : ranks_) {
    const Tokens on_rank = rank.cache->draft(request.id, request.planned, count);
    agreed = agreed && (&rank == &ranks_.front() || on_rank == granted);
    granted = std::min(granted, on_rank);
  }
  for (const RankUnit& rank : ranks_) {
    if (!agreed) rank.cache->draft(request.id, request.planned, granted);
  }
  drafts.resize(granted.index());
  return drafts;
}

bool Engine::reserve_decode(Request& request) {
  while (reserve(request, Tokens{1}) == Tokens{0}) {
    // An offload ends by itself and gives its locks back; a forward in flight, its window's pages.
    const bool more_comes = transfers_pending() || !in_flight_.empty();
    if (youngest_running() == &request && more_comes) return false;
    free_pages();
    if (request.phase != Phase::running) return false;
  }
  return true;
}

void Engine::plan_prefills(Forward& forward) {
  Tokens budget = config_.prefill_chunk;
  for (auto& [id, request] : requests_) {
    if (!can_move(request) || request.decoding() || budget == Tokens{0}) continue;
    const Tokens wanted = std::min(budget, request.prefill_end - request.planned);
    const Tokens granted = reserve(request, wanted);
    if (granted == Tokens{0}) continue;
    plan(forward, request, granted);
    budget -= granted;
  }
}

void Engine::free_pages() {
  // Who waits stays out until somebody has ended: otherwise it would lock the same pages again.
  short_of_pages_ = true;
  dirty_ = true;
  if (drop_waiting_locks(nullptr)) return;
  Request& youngest = *youngest_running();
  // It has come no further since it was admitted: it would come to the same place for ever.
  held_back_ = youngest.planned == youngest.boundary && somebody_is_held();
  retract(youngest, true);
}

Tokens Engine::reserve(Request& request, Tokens count) {
  bool agreed = true;
  Tokens granted = count;
  for (const RankUnit& rank : ranks_) {
    const Tokens on_rank = rank.cache->reserve(request.id, request.planned, count);
    agreed = agreed && (&rank == &ranks_.front() || on_rank == granted);
    granted = std::min(granted, on_rank);
  }
  // No rank keeps pages that another one could not have.
  if (!agreed) {
    for (const RankUnit& rank : ranks_) rank.cache->trim(request.id, request.planned + granted);
  }
  return granted;
}

Request* Engine::youngest_running() {
  const auto youngest =
      std::ranges::find_if(requests_.rbegin(), requests_.rend(),
                           [&](const auto& entry) { return can_move(entry.second); });
  return youngest == requests_.rend() ? nullptr : &youngest->second;
}

std::vector<std::vector<SnapshotView>> Engine::track(Request& request, Tokens end, bool decode) {
  std::vector<std::vector<SnapshotView>> snapshots;
  for (const RankUnit& rank : ranks_) {
    snapshots.push_back(rank.cache->track(request.id, request.planned, end, decode));
  }
  // A checkpoint that one rank has no slot for would be of no use to the others.
  const auto tracked = [](const std::vector<SnapshotView>& on_rank, Tokens depth) {
    return std::ranges::find(on_rank, depth, &SnapshotView::depth) != on_rank.end();
  };
  const std::vector<std::vector<SnapshotView>> offered = snapshots;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    std::erase_if(snapshots[rank], [&](const SnapshotView& snapshot) {
      const bool common = std::ranges::all_of(
          offered, [&](const auto& on_rank) { return tracked(on_rank, snapshot.depth); });
      if (!common) ranks_[rank].cache->untrack(request.id, snapshot.depth);
      return !common;
    });
  }
  return snapshots;
}

void Engine::plan(Forward& forward, Request& request, Tokens count,
                  std::span<const TokenId> drafts) {
  PlannedSegment segment;
  segment.request = request.id;
  segment.generation = request.generation;
  segment.extra_key = request.names.extra_key;
  segment.start = request.planned;
  segment.drafts = Tokens{static_cast<std::int64_t>(drafts.size())};
  segment.count = count + segment.drafts;
  segment.decode = request.decoding();
  const Tokens end = segment.end();
  segment.last_chunk = !segment.decode && end == request.prefill_end;
  segment.samples = !drafts.empty() || end == request.coming();
  const Tokens known = std::min(segment.start + count, request.length());
  std::vector<TokenId> tokens(
      request.tokens.begin() + static_cast<std::ptrdiff_t>(segment.start.index()),
      request.tokens.begin() + static_cast<std::ptrdiff_t>(known.index()));
  tokens.resize(count.index(), kTokenOnDevice);
  tokens.insert(tokens.end(), drafts.begin(), drafts.end());

  std::vector<std::vector<SnapshotView>> snapshots = track(request, end, segment.decode);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankSegment local;
    local.tokens = tokens;
    if (known < segment.start + count) local.input = input_of(request);
    local.snapshots = std::move(snapshots[rank]);
    const RequestTables tables = ranks_[rank].cache->begin_forward(request.id);
    local.full.assign(tables.full.begin(), tables.full.end());
    local.swa.assign(tables.swa.begin(), tables.swa.end());
    local.q = tables.q;
    local.columns = tables.columns;
    std::ranges::merge(local.snapshots, local.columns, std::back_inserter(local.states), {},
                       &SnapshotView::depth, &SnapshotView::depth);
    for (LoadId load : tables.awaited) {
      forward.newest_load = std::max(forward.newest_load, std::optional(load));
    }
    forward.ranks[rank].segments.push_back(std::move(local));
  }
  // Until the guesses are verified nothing can follow.
  if (segment.samples) request.sampling += std::max(Tokens{1}, segment.drafts);
  request.planned = end;
  forward.segments.push_back(std::move(segment));
}

DeviceInput Engine::input_of(const Request& request) const {
  const std::shared_ptr<Forward>& forward = in_flight_.back();
  const auto segment = std::ranges::find(forward->segments, request.id, &PlannedSegment::request);
  CHECK("engine.input_in_flight", segment != forward->segments.end() && segment->samples);
  return {forward, static_cast<std::size_t>(segment - forward->segments.begin())};
}

}  // namespace lockstep::engine
