#include "engine/engine.h"

#include <algorithm>

namespace lockstep::engine {

Engine::Engine(const CacheConfig& config, const Geometry& geometry, const model::Model& model,
               std::vector<RankUnit> ranks, std::unique_ptr<RankVote> vote,
               std::unique_ptr<Drafter> drafter, EventSink& sink)
    : config_(config),
      geometry_(geometry),
      model_(model),
      ranks_(std::move(ranks)),
      vote_(std::move(vote)),
      drafter_(std::move(drafter)),
      sink_(sink) {}

// ---------------------------------------------------------------- submission

void Engine::submit(RequestId id, Submission submission, bool resumed) {
  CHECK("engine.submit.new", find(id) == nullptr && !ended_.contains(id));
  CHECK("engine.submit.sizes", !submission.prompt.empty() && submission.decode > Tokens{0});
  const auto view = [](const std::optional<std::string>& text) {
    return text ? std::optional<std::string_view>(*text) : std::nullopt;
  };
  emit(id, RequestSubmitted{submission.prompt, submission.decode, view(submission.names.extra_key),
                            view(submission.names.cache_salt), resumed});
  const Tokens prompt{static_cast<std::int64_t>(submission.prompt.size())};
  if (const std::string reason = refusal(prompt + submission.decode); !reason.empty()) {
    emit(id, RequestRefused{reason});
    ended_.try_emplace(id);
    return;
  }
  Request request;
  request.id = id;
  request.names = std::move(submission.names);
  request.tokens = std::move(submission.prompt);
  request.target = request.length() + submission.decode;
  request.prefill_end = request.length();
  for (const RankUnit& rank : ranks_) rank.cache->open(id, request.names);
  requests_.emplace(id, std::move(request));
  held_back_ = false;
  dirty_ = true;
}

std::string Engine::refusal(Tokens length) const {
  const Pages pages = geometry_.pages_touched(length - Tokens{1});
  if (geometry_.has_full && Rows{pages.value()} > config_.full_pages) {
    return "needs " + std::to_string(pages.value()) + " FULL pages, the pool has " +
           std::to_string(config_.full_pages.value());
  }
  // One window stays locked in the tree below the last checkpoint, one more is the request's own.
  const Pages live = geometry_.window_pages() * 2 + Pages{1};
  const Rows swa{std::min(pages, live).value()};
  if (geometry_.has_swa && swa > config_.swa_pages) {
    return "needs " + std::to_string(swa.value()) + " SWA pages, the pool has " +
           std::to_string(config_.swa_pages.value());
  }
  return "";
}

// ---------------------------------------------------------------- the step

bool Engine::ready() const {
  if (!may_launch() && in_flight_.front()->ranks_to_go > 0) return false;
  if (can_take_results() && (!may_launch() || nothing_planned_)) return true;
  if (dirty_ && may_launch()) return true;
  const auto on_all_ranks = [&](auto condition) { return std::ranges::all_of(ranks_, condition); };
  return settleable_load().has_value() || on_all_ranks([](const RankUnit& rank) {
           return rank.cache->oldest_finished_offload().has_value();
         }) ||
         on_all_ranks([](const RankUnit& rank) { return rank.cache->releasable_quarantine() > 0; });
}

void Engine::step() {
  dirty_ = false;
  emit(kNoRequest, StepBegun{});
  settle_transfers();
  take_results();
  apply_commands();
  border_of_phases();
  const bool draining =
      !commands_.empty() && std::holds_alternative<FlushCommand>(commands_.front());
  if (!draining) {
    match_waiting();
    commit_loaded();
    border_of_phases();
    admit_waiting();
  }
  for (const RankUnit& rank : ranks_) rank.cache->start_loads();
  border_of_phases();
  nothing_planned_ = true;
  if (!draining && may_launch()) launch_forward();
}

void Engine::settle_transfers() {
  while (settle_oldest_load()) {
  }
  while (settle_oldest_offload()) {
  }
  note_landings();
  std::size_t entries = ranks_.front().cache->releasable_quarantine();
  for (const RankUnit& rank : ranks_) {
    entries = std::min(entries, rank.cache->releasable_quarantine());
  }
  for (const RankUnit& rank : ranks_) rank.cache->release_quarantine(entries);
}

std::optional<FinishedLoad> Engine::settleable_load() const {
  // Loads are numbered alike on every rank, but a rank that adopted nothing has none to wait for.
  std::optional<FinishedLoad> settleable;
  for (const RankUnit& rank : ranks_) {
    const std::optional<LoadId> load = rank.cache->oldest_load();
    if (load && (!settleable || *load < settleable->id)) {
      settleable = FinishedLoad{*load, kNoRequest, true};
    }
  }
  for (const RankUnit& rank : ranks_) {
    if (!settleable || rank.cache->oldest_load() != settleable->id) continue;
    const std::optional<FinishedLoad> finished = rank.cache->oldest_finished_load();
    if (!finished) return std::nullopt;
    settleable->request = finished->request;
    settleable->good = settleable->good && finished->good;
  }
  return settleable;
}

bool Engine::settle_oldest_load() {
  const std::optional<FinishedLoad> load = settleable_load();
  if (!load) return false;
  std::set<RequestId> sharers;
  for (const RankUnit& rank : ranks_) {
    if (rank.cache->oldest_load() != load->id) continue;
    const std::vector<RequestId> affected = rank.cache->settle_load(load->id, load->good);
    sharers.insert(affected.begin(), affected.end());
  }
  for (RequestId id : sharers) start_again(*find(id));
  take_verdict(*load);
  dirty_ = dirty_ || !load->good;
  return true;
}

void Engine::take_verdict(const FinishedLoad& load) {
  Request* request = find(load.request);
  if (request == nullptr || request->load != load.id) return;
  request->load.reset();
  if (!load.good) return start_again(*request);
  reach(*request, Point::loaded);
  dirty_ = true;
}

void Engine::start_again(Request& request) {
  for (const RankUnit& rank : ranks_) rank.cache->reset(request.id);
  request.wait_again();
  request.query_store = false;
  emit(request.id, RequestRestarted{});
}

bool Engine::settle_oldest_offload() {
  bool good = true;
  for (const RankUnit& rank : ranks_) {
    const auto finished = rank.cache->oldest_finished_offload();
    if (!finished) return false;
    good = good && finished->good;
  }
  for (const RankUnit& rank : ranks_) {
    rank.cache->settle_offload(rank.cache->oldest_finished_offload()->id, good);
  }
  return true;
}

void Engine::note_landings() {
  for (auto& [id, request] : requests_) {
    const bool committed = request.phase == Phase::running || request.phase == Phase::finishing;
    const bool restored = committed && request.boundary > request.device_hit;
    if (!restored || request.reached.contains(Point::landed)) continue;
    const bool loading = std::ranges::any_of(
        ranks_, [&](const RankUnit& rank) { return rank.cache->path_is_loading(request.id); });
    if (!loading) reach(request, Point::landed);
  }
}

void Engine::take_results() {
  // One stays in flight, unless none could be planned behind it.
  if (can_take_results() && (!may_launch() || nothing_planned_)) {
    const std::shared_ptr<Forward> forward = std::move(in_flight_.front());
    in_flight_.pop_front();
    take_forward(*forward);
  }
  std::vector<RequestId> finishing;
  for (const auto& [id, request] : requests_) {
    if (request.phase == Phase::finishing) finishing.push_back(id);
  }
  for (RequestId id : finishing) try_finish(*find(id));
}

bool Engine::may_launch() const {
  return in_flight_.size() <= static_cast<std::size_t>(config_.ahead);
}

bool Engine::can_take_results() const {
  if (in_flight_.empty() || in_flight_.front()->ranks_to_go > 0) return false;
  const std::optional<LoadId> newest = in_flight_.front()->newest_load;
  return !newest || std::ranges::none_of(ranks_, [&](const RankUnit& rank) {
    const std::optional<LoadId> oldest = rank.cache->oldest_load();
    return oldest && *oldest <= *newest;
  });
}

void Engine::take_forward(Forward& forward) {
  drop_outdated(forward);
  for (std::size_t i = 0; i < forward.segments.size(); ++i) {
    const PlannedSegment& segment = forward.segments[i];
    if (!segment.dropped && segment.drafts > Tokens{0}) verify(forward, i);
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::vector<SegmentView> views = forward.view(rank);
    sink_.emit(RankId{static_cast<std::uint32_t>(rank)}, kNoRequest,
               ForwardAccepted{forward.id, views});
  }
  const std::size_t size = model_.output_bytes().index();
  for (std::size_t i = 0; i < forward.segments.size(); ++i) {
    if (forward.segments[i].dropped) continue;
    const std::span<const std::byte> outputs = forward.ranks.front().segments[i].results();
    take_segment(forward.segments[i], outputs.last(size));
  }
}

// A request that has started again takes nothing of what it computed before, one that has all its
// tokens nothing of the forward that ran ahead.
void Engine::drop_outdated(Forward& forward) const {
  for (PlannedSegment& segment : forward.segments) {
    const Request* request = find(segment.request);
    segment.dropped = request == nullptr || request->generation != segment.generation ||
                      request->phase == Phase::finishing;
  }
}

void Engine::verify(Forward& forward, std::size_t i) {
  PlannedSegment& segment = forward.segments[i];
  Request& request = *find(segment.request);
  const RankSegment& first = forward.ranks.front().segments[i];
  const Tokens fed = segment.end() - segment.drafts;
  Tokens right{0};
  while (right < segment.drafts) {
    const std::size_t at = (fed + right - segment.start).index();
    const std::size_t size = model_.output_bytes().index();
    const std::span<const std::byte> output =
        std::span<const std::byte>(first.outputs.get()).subspan((at - 1) * size, size);
    if (model_.next_token(output) != first.tokens[at]) break;
    accept_token(request, first.tokens[at]);
    ++right;
  }
  request.sampling -= segment.drafts - Tokens{1};
  segment.count -= segment.drafts - right;
  segment.drafts = right;
  request.planned = segment.end();
  for (RankForward& rank : forward.ranks)
    rank.segments[i].cut(segment.end(), segment.count, model_.output_bytes());
}

void Engine::accept_token(Request& request, TokenId token) {
  emit(request.id, TokenAccepted{token, request.length()});
  request.tokens.push_back(token);
  reach(request, Point::first_token);
}

void Engine::take_segment(const PlannedSegment& segment, std::span<const std::byte> output) {
  Request& request = *find(segment.request);
  request.fed = segment.end();
  for (const RankUnit& rank : ranks_) {
    rank.cache->accepted(request.id, request.fed, segment.decode);
    if (!segment.decode) {
      rank.cache->chunk_end(request.id, request.tokens, request.fed, segment.last_chunk);
    }
  }
  if (request.boundary > Tokens{0}) reach(request, Point::copied);
  if (!segment.samples) return;
  request.sampling -= Tokens{1};
  accept_token(request, model_.next_token(output));
  if (request.length() == request.target) request.phase = Phase::finishing;
}

void Engine::try_finish(Request& request) {
  for (const RankUnit& rank : ranks_) {
    // Every rank sees the same path: what one has to wait for, all have to.
    if (!rank.cache->finish(request.id, request.tokens, request.fed)) return;
  }
  reach(request, Point::finished);
  end(request, RequestFinished{});
}

void Engine::end_finishing() {
  std::vector<RequestId> finishing;
  for (const auto& [id, request] : requests_) {
    if (request.phase == Phase::finishing) finishing.push_back(id);
  }
  for (RequestId id : finishing) {
    reach(*find(id), Point::finished);
    end(*find(id), RequestFinished{});
  }
}

void Engine::end(Request& request, EventBody event) {
  const RequestId id = request.id;
  short_of_pages_ = held_back_ = false;
  for (const RankUnit& rank : ranks_) rank.cache->close(id);
  emit(id, std::move(event));
  ended_.emplace(id, std::move(request.reached));
  requests_.erase(id);
}

// ---------------------------------------------------------------- commands

template <class Concrete>
void Engine::ask(Concrete command) {
  commands_.emplace_back(std::in_place_type<Concrete>, std::move(command));
  held_back_ = false;
  dirty_ = true;
}

void Engine::cancel(RequestId id) {
  ask(CancelCommand{id});
}

void Engine::retract(RequestId id) {
  ask(RetractCommand{id});
}

void Engine::evict(EvictCommand command) {
  ask(std::move(command));
}

void Engine::flush() {
  ask(FlushCommand{});
}

void Engine::shrink(ShrinkCommand command) {
  ask(command);
}

void Engine::evict_between_phases(EvictCommand command) {
  evictions_.push_back(std::move(command));
  held_back_ = false;
  dirty_ = true;
}

void Engine::border_of_phases() {
  for (; !evictions_.empty(); evictions_.pop_front()) apply(evictions_.front());
}

void Engine::ask_again(std::deque<Command> commands) {
  commands_ = std::move(commands);
  dirty_ = dirty_ || !commands_.empty();
}

void Engine::apply_commands() {
  while (!commands_.empty()) {
    if (!std::visit([&](const auto& command) { return apply(command); }, commands_.front())) return;
    commands_.pop_front();
    dirty_ = true;
  }
}

bool Engine::apply(const CancelCommand& command) {
  if (Request* request = find(command.id)) end(*request, RequestCancelled{});
  return true;
}

bool Engine::apply(const RetractCommand& command) {
  Request* request = find(command.id);
  const bool has_place =
      request != nullptr && (request->phase == Phase::running || request->phase == Phase::loading);
  if (has_place) retract(*request, true);
  return true;
}

bool Engine::apply(const EvictCommand& command) {
  for (const RankUnit& rank : ranks_) {
    if (command.at) {
      rank.cache->evict_at(command.component, command.names, command.tokens, *command.at);
    } else {
      rank.cache->evict(command.component, command.count);
    }
  }
  return true;
}

bool Engine::apply(const FlushCommand&) {
  // Drain first: forwards and transfers end, finished requests leave. Until then nothing is
  // admitted and no forward starts.
  if (transfers_pending() || !in_flight_.empty()) return false;
  for (auto& [id, request] : requests_) {
    if (request.phase == Phase::finishing) return false;
  }
  for (auto& [id, request] : requests_) {
    if (request.phase != Phase::waiting) retract(request, false);
    for (const RankUnit& rank : ranks_) rank.cache->drop_match(id);
    request.has_result = false;
  }
  for (const RankUnit& rank : ranks_) rank.cache->flush();
  return true;
}

bool Engine::apply(const ShrinkCommand& command) {
  for (const RankUnit& rank : ranks_) rank.cache->shrink(command.component, command.keep);
  Rows& pool = command.component == Component::full  ? config_.full_pages
               : command.component == Component::swa ? config_.swa_pages
                                                     : config_.mamba_slots;
  pool = std::min(pool, command.keep);
  std::vector<std::pair<RequestId, std::string>> refused;
  for (const auto& [id, request] : requests_) {
    if (request.phase == Phase::finishing) continue;  // needs no more rows
    if (std::string reason = refusal(request.target); !reason.empty()) {
      refused.emplace_back(id, std::move(reason));
    }
  }
  for (const auto& [id, reason] : refused) end(*find(id), RequestRefused{reason});
  return true;
}

void Engine::retract(Request& request, bool insert) {
  for (const RankUnit& rank : ranks_) {
    if (insert) rank.cache->retract(request.id, request.tokens, request.fed);
    rank.cache->close(request.id);
    rank.cache->open(request.id, request.names);
  }
  request.wait_again();
  emit(request.id, RequestRetracted{});
  dirty_ = true;
}

// ---------------------------------------------------------------- points and look-ups

void Engine::hold(RequestId id, Point point) {
  Request* request = find(id);
  if (request == nullptr) return;
  request->hold_at = point;
  if (request->reached.contains(point)) request->held = true;
}

void Engine::release(RequestId id) {
  Request* request = find(id);
  if (request == nullptr) return;
  request->hold_at.reset();
  request->held = false;
  held_back_ = false;
  dirty_ = true;
}

void Engine::reach(Request& request, Point point) {
  request.reached.insert(point);
  if (request.hold_at == point) request.held = true;
}

void Engine::remember(RequestId id, const std::set<Point>& reached, std::optional<Point> hold_at) {
  Request* request = find(id);
  if (request == nullptr) return;
  request->reached = reached;
  request->hold_at = hold_at;
}

bool Engine::reached(RequestId id, Point point) const {
  if (const Request* request = find(id)) return request->reached.contains(point);
  const auto ended = ended_.find(id);
  return ended != ended_.end() && ended->second.contains(point);
}

std::vector<const Request*> Engine::unfinished() const {
  std::vector<const Request*> requests;
  for (const auto& [id, request] : requests_) requests.push_back(&request);
  return requests;
}

Request* Engine::find(RequestId id) {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : &found->second;
}

const Request* Engine::find(RequestId id) const {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : &found->second;
}

bool Engine::somebody_is_held() const {
  return std::ranges::any_of(requests_, [](const auto& entry) { return entry.second.held; });
}

std::size_t Engine::running() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      requests_, [](const auto& entry) { return entry.second.phase != Phase::waiting; }));
}

bool Engine::transfers_pending() const {
  return std::ranges::any_of(ranks_,
                             [](const RankUnit& rank) { return rank.cache->transfers_pending(); });
}

}  // namespace lockstep::engine
