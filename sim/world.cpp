#include "sim/world.h"

#include <algorithm>
#include <array>

#include "core/random.h"
#include "sim/defects/registry.h"
#include "sim/drafter.h"

namespace lockstep::sim {

namespace {

// Engine steps without an accepted forward or a settled transfer after which a run counts as
// stalled.
constexpr std::uint64_t kStallSteps = 1000;

MemoryStoreConfig store_config(const StoreSpec& spec) {
  MemoryStoreConfig config;
  config.capacity = Bytes{spec.capacity_mib << 20};
  config.link.latency = Nanoseconds{static_cast<std::int64_t>(spec.latency_us * 1000.0)};
  config.link.bytes_per_ns = spec.gigabytes_per_s;
  if (spec.lease_us) config.lease = Nanoseconds{static_cast<std::int64_t>(*spec.lease_us * 1000.0)};
  return config;
}

std::string_view name(StreamKind stream) {
  constexpr std::array<std::string_view, kStreamCount> names{"compute", "load", "offload"};
  return names[index(stream)];
}

std::string text(const RaceSide& side) {
  return std::string(side.operation) + " (" + std::string(name(side.stream)) + " stream, " +
         (side.mode == AccessMode::write ? "write" : "read") + ")";
}

std::string text(Component component, Row row, Part part) {
  return std::string(name(component)) + " row " + std::to_string(row.value()) + ", " +
         std::string(name(part));
}

}  // namespace

World::World(WorldConfig config)
    : config_(std::move(config)),
      faults_(config_.faults, names_),
      store_(std::make_unique<MemoryStore>(loop_, static_cast<EventSink&>(*this),
                                           store_config(config_.store), &faults_)),
      digest_([this](RankId rank) -> const Inspector& {
        return ranks_[rank.index()]->cache().inspector();
      }),
      matcher_(config_.expected_events, names_) {
  store_->on_progress([this] {
    for (const auto& rank : ranks_) rank->cache().pump();
  });
}

World::~World() {
  // No fault answers what is reported from here on: the engine goes first.
  is_between_engines_ = true;
  // Requests that are still open give their rows back, and report it: the oracle must outlive them.
  engine_.reset();
  ranks_.clear();
  runners_.clear();
}

Result<std::unique_ptr<World>> World::make(WorldConfig config) {
  if (const Result<void> checked = FaultPlan::check(config.faults); !checked)
    return checked.error();
  if (config.parts == nullptr) {
    auto parts = make_parts(config.defects);
    if (!parts) return parts.error();
    config.parts = std::move(*parts);
  }
  std::unique_ptr<World> world(new World(std::move(config)));
  if (const Result<void> built = world->build(); !built) return built.error();
  world->judge_ = std::make_unique<oracle::Judge>(world->judge_config());
  return world;
}

Result<void> World::build() {
  const std::uint64_t weight_seed = substream(config_.seed, "weights").next();
  auto model = model::make_model(config_.model, weight_seed, config_.cache.page);
  if (!model) return model.error();
  std::vector<std::unique_ptr<model::Model>> shards;
  const auto ranks = static_cast<std::uint32_t>(config_.ranks);
  for (std::uint32_t r = 0; ranks > 1 && (*model)->splits_into(ranks) && r < ranks; ++r) {
    auto shard = model::make_model(config_.model, weight_seed, config_.cache.page, {r, ranks});
    if (!shard) return shard.error();
    shards.push_back(std::move(*shard));
  }
  const model::Model& first = shards.empty() ? **model : *shards.front();
  const auto pools = plan_pools(first, config_.model, config_.cache);
  if (!pools) return pools.error();

  retired_models_ = std::move(shards_);
  retired_models_.push_back(std::move(model_));
  shards_ = std::move(shards);
  model_ = std::move(*model);
  layout_ = layout_fingerprint(*pools);
  geometry_ = model_->geometry();
  geometry_.page = config_.cache.page;
  geometry_.track_interval = config_.cache.track_interval;
  if (const Result<void> there = build_accelerators(weight_seed); !there) return there.error();
  EventSink& sink = *this;
  std::vector<engine::RankUnit> units;
  for (std::int64_t r = 0; r < config_.ranks; ++r) {
    const RankHostConfig host{RankId{static_cast<std::uint32_t>(r)},
                              static_cast<std::uint32_t>(config_.ranks),
                              geometry_,
                              config_.cache,
                              config_.seed,
                              config_.schedule,
                              config_.watch,
                              config_.backend.free_running};
    ranks_.push_back(std::make_unique<RankHost>(host, *pools, *accelerators_[host.rank.index()],
                                                runner_of(host.rank), *config_.parts, loop_,
                                                *store_, sink, &faults_, reports(host.rank)));
    units.push_back(ranks_.back()->unit());
  }
  std::unique_ptr<engine::Drafter> drafter;
  if (!config_.speculation.empty()) {
    drafter = std::make_unique<ScriptedDrafter>(config_.speculation, *model_);
  }
  engine_ = std::make_unique<engine::Engine>(config_.cache, geometry_, *model_, std::move(units),
                                             config_.parts->rank_vote(), std::move(drafter), sink);
  return {};
}

Result<void> World::build_accelerators(std::uint64_t weight_seed) {
  runners_.clear();
  accelerators_.clear();
  auto made = make_accelerators(config_.backend, config_.ranks);
  if (!made) return made.error();
  accelerators_ = std::move(*made);
  if (!config_.backend.runs_kernels()) return {};
  for (std::int64_t r = 0; r < config_.ranks; ++r) {
    const RankId rank{static_cast<std::uint32_t>(r)};
    auto runner = model::make_model(config_.model, weight_seed, config_.cache.page,
                                    model_of(rank).shard(), accelerators_[rank.index()].get());
    if (!runner) return runner.error();
    runners_.push_back(std::move(*runner));
  }
  return {};
}

oracle::JudgeConfig World::judge_config() const {
  oracle::JudgeConfig config;
  config.geometry = geometry_;
  config.cache = config_.cache;
  config.model = model_.get();
  for (const auto& shard : shards_) config.shards.push_back(shard.get());
  config.layout_fingerprint = layout_;
  for (const auto& rank : ranks_) config.ranks.push_back(&rank->cache().inspector());
  config.stop_at_first = config_.stop_at_first;
  return config;
}

void World::emit(RankId rank, RequestId request, EventBody body) {
  // The judge comes last into the world: nothing that happens before is an event of the run.
  if (judge_ == nullptr || is_between_engines_) return;
  if (std::holds_alternative<StepBegun>(body)) step_ = StepId{step_.value() + 1};
  if (const auto* token = std::get_if<TokenAccepted>(&body);
      token != nullptr && config_.keep_tokens) {
    tokens_[request].push_back(token->token);
  }
  // A forward whose results are all dropped is none.
  const auto* accepted = std::get_if<ForwardAccepted>(&body);
  const bool progress = (accepted != nullptr && !accepted->segments.empty()) ||
                        std::holds_alternative<LoadFinished>(body) ||
                        std::holds_alternative<OffloadFinished>(body);
  if (progress) last_progress_ = step_.value();
  const Event event{step_, loop_.now(), rank, request, std::move(body)};
  ++events_;
  digest_.on_event(event);
  collector_.on_event(event);
  coverage_.on_event(event);
  matcher_.on_event(event);
  if (config_.observer != nullptr) config_.observer->on_event(event);
  judge_->on_event(event);
  for (const FaultRequest& fault : faults_.on_event(event)) inject(fault);
}

void World::inject(const FaultRequest& request) {
  const FaultAction& action = request.fault->action;
  if (action.kind == "flush") {
    engine_->flush();
  } else if (action.kind == "stale") {
    lose_tail(request.rank, request.request);
  } else if (action.kind == "evict") {
    evict_one(request.fault->component);
  } else if (action.kind == "shrink") {
    engine_->shrink({action.pool, Rows{action.number}});
  } else if (action.kind == "restart") {
    restarts_.push_back(request);
  } else if (const auto target = find(action.request)) {
    if (action.kind == "cancel") engine_->cancel(*target);
    if (action.kind == "retract") engine_->retract(*target);
  }
}

void World::evict_one(std::optional<Component> component) {
  for (Component each : kComponents) {
    if (component && each != *component) continue;
    engine::EvictCommand command;
    command.component = each;
    command.count = Rows{1};
    engine_->evict_between_phases(std::move(command));
  }
}

void World::take_restart() {
  const FaultRequest request = restarts_.front();
  restarts_.pop_front();
  if (const Result<void> done = restart(*request.fault->restart); !done) {
    refusal_ =
        Error{"/faults/" + std::to_string(request.site) + "/do/restart: " + done.error().message};
  }
}

void World::lose_tail(RankId rank, RequestId request) {
  const std::vector<TokenId>& tokens = tokens_.at(request);
  const Tokens end = geometry_.page_floor(Tokens{static_cast<std::int64_t>(tokens.size()) - 1});
  std::vector<ObjectKey> keys;
  for (Tokens at = geometry_.page; at <= end; at += geometry_.page) {
    for (Component component : kComponents) {
      keys.push_back(*object_key(component, rank, names_of_.at(request), tokens, at));
    }
  }
  store_->remove(keys);
}

template <class Action>
void World::guarded(Action action) {
  try {
    action();
  } catch (const ContractFailure& failure) {
    report("CHECK:" + failure.name(), kNoRequest, "the contract holds", failure.what());
    over_ = true;
  }
}

void World::report(const std::string& invariant, RequestId request, std::string expected,
                   std::string actual) {
  oracle::Violation violation = found_now(invariant, std::move(expected), std::move(actual));
  violation.request = request;
  judge_->report(std::move(violation));
}

oracle::Violation World::found_now(const std::string& invariant, std::string expected,
                                   std::string actual) const {
  oracle::Violation violation;
  violation.invariant = invariant;
  violation.step = step_;
  violation.time = loop_.now();
  violation.expected = std::move(expected);
  violation.actual = std::move(actual);
  return violation;
}

RankReports World::reports(RankId rank) {
  const auto report_row = [this, rank](const char* invariant, Row row, LayerId layer,
                                       std::string expected, std::string actual) {
    oracle::Violation violation = found_now(invariant, std::move(expected), std::move(actual));
    violation.rank = rank;
    violation.row = row;
    violation.layer = layer;
    judge_->report(std::move(violation));
  };
  return {[report_row](const Race& race) {
            report_row("H1", race.row, race.layer,
                       text(race.earlier) + " and " + text(race.later) +
                           " ordered by a stream or an event",
                       "no order at " + text(race.component, race.row, race.part));
          },
          [report_row](const UndeclaredWrite& write) {
            report_row("ACCESS", write.row, write.layer,
                       "every write of " + std::string(write.operation) + " declared",
                       text(write.component, write.row, write.part) + " written, not declared");
          }};
}

RequestId World::submit(const std::string& name, engine::Submission submission) {
  const RequestId id{static_cast<std::uint32_t>(names_.size())};
  names_.emplace(id, name);
  ids_.emplace(name, id);
  names_of_[id] = submission.names;
  if (config_.keep_tokens) tokens_[id] = submission.prompt;
  guarded([&] { engine_->submit(id, std::move(submission), false); });
  return id;
}

std::optional<RequestId> World::find(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

bool World::has_ended(RequestId id) const {
  return engine_->ended().contains(id);
}

std::optional<ObjectKey> World::object_key(Component component, RankId rank,
                                           const RequestNamespace& names,
                                           std::span<const TokenId> tokens, Tokens at) const {
  const Geometry& g = geometry_;
  const Tokens length{static_cast<std::int64_t>(tokens.size())};
  if (at <= Tokens{0} || at > length || !Geometry::on_grid(at, g.page)) return std::nullopt;
  const KeyScheme keys(g.page, rank, static_cast<std::uint32_t>(config_.ranks));
  const PageHash space =
      keys.namespace_hash({model_->fingerprint(), layout_, names.extra_key, names.cache_salt});
  return keys.object_key(keys.page_hashes(space, tokens.first(at.index())).back(), component);
}

bool World::advance() {
  if (over()) return false;
  bool moved = false;
  guarded([&] {
    if (!restarts_.empty()) {
      take_restart();
      moved = true;
    } else if (run_devices()) {
      moved = true;
    } else if (engine_->ready()) {
      engine_->step();
      watch_for_stall();
      moved = true;
    } else if (!loop_.empty()) {
      loop_.run_next();
      moved = true;
    } else {
      moved = wait_for_devices();
    }
  });
  if (moved) ++moves_;
  watch_for_endlessness();
  return moved && !over();
}

bool World::run_devices() {
  bool moved = false;
  for (const auto& rank : ranks_) moved |= rank->run_device();
  return moved;
}

bool World::wait_for_devices() {
  const auto idle = [](const auto& rank) { return rank->device_is_idle(); };
  if (std::ranges::all_of(ranks_, idle)) return false;
  for (const auto& accelerator : accelerators_) accelerator->synchronize();
  return run_devices();
}

void World::watch_for_stall() {
  if (step_.value() < last_progress_ + kStallSteps) return;
  stall(
      "an accepted forward or a settled transfer within " + std::to_string(kStallSteps) + " steps",
      "none since step " + std::to_string(last_progress_));
}

// Whoever goes round in circles makes events, or at least lets the clock go on.
void World::watch_for_endlessness() {
  if (config_.most_events == 0 || events_ + moves_ <= config_.most_events || over_) return;
  stall("an end within " + std::to_string(config_.most_events) + " events", "no end by then");
}

void World::stall(const std::string& expected, const std::string& actual) {
  over_ = true;
  for (const engine::Request* request : engine_->unfinished()) {
    report("L1", request->id, expected, actual);
  }
  if (engine_->unfinished().empty()) report("L1", kNoRequest, expected, actual);
}

Result<void> World::restart(const RestartStep& what) {
  if (what.store) store_->restart(what.keep);
  return what.engine ? restart_engine(what.model, what.cache) : Result<void>();
}

Result<void> World::restart_engine(const std::optional<model::ModelSpec>& model,
                                   const std::optional<CacheConfig>& cache) {
  struct Resumed {
    RequestId id;
    engine::Submission submission;
    std::set<engine::Point> reached;
    std::optional<engine::Point> hold_at;
  };
  // Who has all tokens lacks nothing but its place in the tree, which goes.
  guarded([&] { engine_->end_finishing(); });
  std::vector<Resumed> resumed;
  for (const engine::Request* request : engine_->unfinished()) {
    resumed.push_back({request->id,
                       {request->tokens, request->target - request->length(), request->names},
                       request->reached,
                       request->hold_at});
  }
  const engine::Milestones ended = engine_->ended();
  std::deque<engine::Command> commands = engine_->take_commands();
  store_->drop_batches();
  emit(RankId{0}, kNoRequest, EngineRestarted{});
  is_between_engines_ = true;
  engine_.reset();
  ranks_.clear();
  if (model) config_.model = *model;
  if (cache) config_.cache = *cache;
  if (const Result<void> built = build(); !built) {
    over_ = true;
    return built;
  }
  judge_->reconfigure(judge_config());
  is_between_engines_ = false;
  engine_->remember(ended);
  engine_->ask_again(std::move(commands));
  guarded([&] {
    for (Resumed& request : resumed) {
      engine_->submit(request.id, std::move(request.submission), true);
      engine_->remember(request.id, request.reached, request.hold_at);
    }
  });
  return {};
}

void World::audit() {
  const bool quiescent =
      engine_->unfinished().empty() && loop_.empty() && !engine_->ready() &&
      std::ranges::all_of(ranks_, [](const auto& rank) { return rank->device_is_idle(); });
  guarded([&] {
    judge_->audit(quiescent);
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Result<void> canaries = ranks_[r]->check_canaries();
      if (!canaries) {
        report("CANARY", kNoRequest, "intact bytes around every buffer", canaries.error().message);
      }
    }
  });
}

RunResult World::finish(const std::string& name) {
  if (!over_) audit();
  judge_->end_of_run();
  RunResult result;
  result.name = name;
  result.seed = config_.seed;
  result.backend = config_.backend.name();
  result.digest = digest_.value();
  result.events = events_;
  result.request_names = names_;
  const oracle::Verdict& verdict = judge_->verdict();
  result.violations = verdict.violations;
  collector_.write(result);
  result.counters["commits_verified"] = static_cast<std::int64_t>(verdict.tally.commits_verified);
  result.counters["rows_compared"] = static_cast<std::int64_t>(verdict.tally.rows_compared);
  result.counters["logprobs_compared"] = static_cast<std::int64_t>(verdict.tally.logprobs_compared);
  result.counters["tokens_verified"] = static_cast<std::int64_t>(verdict.tally.tokens_verified);
  result.faults_injected = faults_.injected();
  result.sometimes = coverage_.counts();
  for (const auto& [id, comparison] : verdict.requests) {
    const auto named = names_.find(id);
    if (named != names_.end()) result.requests[named->second].comparison = comparison;
  }
  return result;
}

}  // namespace lockstep::sim
