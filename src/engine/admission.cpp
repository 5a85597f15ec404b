// Steps 4 and 5 of an engine step: MATCH and LOOKUP for all that wait, then admission one by one
// (semantics 2 to 4).
#include <algorithm>

#include "engine/engine.h"

namespace lockstep::engine {

void Engine::match_waiting() {
  short_of_pages_ = short_of_pages_ && (running() > 0 || held_back_);
  if (short_of_pages_) return;
  for (auto& [id, request] : requests_) {
    if (request.phase != Phase::waiting || request.held) continue;
    // What was held keeps its result and goes on from there.
    if (!request.has_result) match(request);
    if (request.held) continue;
    if (!request.looked_up) look_up(request);
  }
}

void Engine::match(Request& request) {
  for (const RankUnit& rank : ranks_) {
    request.device_hit =
        rank.cache->match(request.id, request.tokens, request.query_store).device_hit;
  }
  request.boundary = request.device_hit;
  request.has_result = true;
  // A prefix whose load has failed is not asked for again.
  request.looked_up = !request.query_store;
  reach(request, Point::matched);
}

void Engine::look_up(Request& request) {
  std::vector<std::vector<Tokens>> restorable;
  for (const RankUnit& rank : ranks_) {
    restorable.push_back(rank.cache->lookup(request.id, request.tokens));
  }
  request.boundary = vote_->combine(restorable, request.device_hit);
  request.looked_up = true;
  emit(request.id, Voted{request.device_hit, request.boundary});
  reach(request, Point::looked_up);
}

void Engine::commit_loaded() {
  for (auto& [id, request] : requests_) {
    const bool loaded = request.phase == Phase::loading && !request.load;
    if (loaded && !request.held) commit(request, true);
  }
}

void Engine::admit_waiting() {
  // Nobody was looked up in this step either; who was released meanwhile keeps the result.
  if (short_of_pages_) return;
  bool open = true;
  for (auto& [id, request] : requests_) {
    if (request.phase != Phase::waiting || request.held) continue;
    const bool place = running() < static_cast<std::size_t>(config_.max_running);
    border_of_phases();
    if (open && place && request.has_result) open = admit(request);
    // A result is good for this step only, unless the request is held with it.
    request.has_result = false;
  }
}

bool Engine::admit(Request& request) {
  if (!fits(request) && !make_room(request)) return false;
  if (request.boundary > request.device_hit && !load(request)) {
    give_up(request, request.device_hit, GiveUp::allocation);
  }
  const bool restored = request.boundary > request.device_hit;
  if (!restored && !secure_private_slot(request)) {
    dirty_ = true;  // refused although it fits: try again in the next step
    return false;
  }
  if (restored && config_.publish == PublishPolicy::after_load)
    begin_load(request);
  else
    commit(request, restored);
  return true;
}

void Engine::begin_load(Request& request) {
  for (const RankUnit& rank : ranks_) {
    const LoadId load = rank.cache->begin_load(request.id, request.boundary);
    CHECK("engine.load_ids_agree", !request.load || request.load == load);
    request.load = load;
  }
  request.phase = Phase::loading;
}

void Engine::commit(Request& request, bool restored) {
  for (const RankUnit& rank : ranks_) {
    if (restored)
      rank.cache->commit_load(request.id, request.boundary);
    else if (request.device_hit > Tokens{0})
      rank.cache->commit_hit(request.id);
    else
      rank.cache->commit_empty(request.id);
  }
  request.phase = Phase::running;
  request.fed = request.planned = request.boundary;
  reach(request, Point::committed);
}

bool Engine::fits(const Request& request) const {
  return std::ranges::all_of(
      ranks_, [&](const RankUnit& rank) { return rank.cache->fits(request.id, request.boundary); });
}

bool Engine::make_room(Request& request) {
  if (running() > 0 || transfers_pending()) return false;
  drop_waiting_locks(&request);
  if (fits(request)) return true;
  if (request.boundary > request.device_hit) {
    give_up(request, request.device_hit, GiveUp::no_room_tail);
    if (fits(request)) return true;
  }
  if (request.device_hit > Tokens{0}) {
    for (const RankUnit& rank : ranks_) rank.cache->drop_match(request.id);
    request.device_hit = Tokens{0};
    give_up(request, Tokens{0}, GiveUp::no_room_hit);
  }
  return fits(request);
}

bool Engine::drop_waiting_locks(const Request* except) {
  bool dropped = false;
  for (auto& [id, other] : requests_) {
    if (&other == except || other.phase != Phase::waiting || other.held) continue;
    dropped = dropped || other.device_hit > Tokens{0};
    for (const RankUnit& rank : ranks_) rank.cache->drop_match(id);
    other.has_result = false;
    other.device_hit = other.boundary = Tokens{0};
  }
  return dropped;
}

bool Engine::load(Request& request) {
  using enum LoadStage;
  for (LoadStage stage : {full, swa, state, private_slot}) {
    bool taken = true;
    for (const RankUnit& rank : ranks_) {
      taken = rank.cache->load(request.id, request.boundary, stage) && taken;
    }
    if (taken) continue;
    for (const RankUnit& rank : ranks_) rank.cache->abort(request.id);
    return false;
  }
  return true;
}

bool Engine::secure_private_slot(Request& request) {
  bool secured = true;
  for (const RankUnit& rank : ranks_) {
    secured = rank.cache->secure_private_slot(request.id) && secured;
  }
  if (secured) return true;
  for (const RankUnit& rank : ranks_) rank.cache->release_private_slot(request.id);
  return false;
}

void Engine::give_up(Request& request, Tokens boundary, GiveUp reason) {
  emit(request.id, GaveUp{request.boundary, boundary, reason});
  request.boundary = boundary;
}

}  // namespace lockstep::engine
