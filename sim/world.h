// The world that scenarios and traces run in: ranks, engine, store and oracle on one virtual clock.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/result.h"
#include "engine/engine.h"
#include "link/keys.h"
#include "model/model.h"
#include "oracle/judge.h"
#include "sim/backend.h"
#include "sim/coverage.h"
#include "sim/event_loop.h"
#include "sim/expectations.h"
#include "sim/fault_plan.h"
#include "sim/rank_host.h"
#include "sim/run_observers.h"
#include "sim/scenario.h"
#include "store/memory_store.h"

namespace lockstep::sim {

struct WorldConfig {
  model::ModelSpec model;
  CacheConfig cache;
  std::int64_t ranks = 1;
  StoreSpec store;
  ScheduleSpec schedule;
  std::vector<SpeculationStep> speculation;
  std::uint64_t seed = 1;
  std::vector<FaultSpec> faults;
  std::vector<std::string> defects;
  std::unique_ptr<engine::Parts> parts;  // in place of what `defects` selects, if not null
  std::vector<ExpectedEvent> expected_events;
  bool stop_at_first = false;
  std::uint64_t most_events = 0;  // after which the run counts as endless (L1); 0: no bound
  Backend backend;
  Watch watch = Watch::races;
  bool keep_tokens = true;  // remember what requests generated; a long trace does not need it
  Observer* observer = nullptr;
};

class World : private EventSink {
 public:
  // Everything that can be refused is refused here: start-up checks, unknown models and defects.
  static Result<std::unique_ptr<World>> make(WorldConfig config);
  ~World() override;

  // A request under a name that is new; it is taken by the engine at once.
  RequestId submit(const std::string& name, engine::Submission submission);
  std::optional<RequestId> find(const std::string& name) const;
  // Prompt plus generated tokens. REQUIRES: keep_tokens, a submitted request.
  const std::vector<TokenId>& tokens_of(RequestId id) const { return tokens_.at(id); }
  bool has_ended(RequestId id) const;
  engine::Engine& engine() { return *engine_; }
  MemoryStore& store() { return *store_; }
  const model::Model& model() const { return *model_; }
  // The object that holds `component` of the sequence at `at`, on `rank`; nothing if `at` is no
  // page multiple > 0.
  std::optional<ObjectKey> object_key(Component component, RankId rank,
                                      const RequestNamespace& names,
                                      std::span<const TokenId> tokens, Tokens at) const;

  // One engine step or one event of the clock; false: nothing is left to do, or the run is over.
  bool advance();
  // Of the engine: device and tree are new, unfinished requests start again. Of the store: batches
  // under way fail; without its data, every object goes, too. REQUIRES: between two calls of
  // advance(). After an error the world is over.
  Result<void> restart(const RestartStep& what);

  void stop_faults() { faults_.stop(); }
  // As the last restart left it.
  const CacheConfig& cache() const { return config_.cache; }
  const RequestNamespace& names_of(RequestId id) const { return names_of_.at(id); }
  // All requests that were submitted.
  const std::map<RequestId, std::string>& names() const { return names_; }

  std::uint64_t steps() const { return step_.value(); }
  // The run is over: a CHECK failed, it stalled, or it has shown enough violations.
  bool over() const { return over_ || judge_->full(); }
  // A restart that a fault asked for was refused: the world is over and has no result.
  const std::optional<Error>& refusal() const { return refusal_; }
  // Reports a violation that the harness itself found.
  void report(const std::string& invariant, RequestId request, std::string expected,
              std::string actual);
  // Checks everything; strictly if nothing is under way.
  void audit();
  // Ends the run: last audit, liveness, figures.
  RunResult finish(const std::string& name);
  std::size_t events_matched() const { return matcher_.matched(); }

 private:
  explicit World(WorldConfig config);
  Result<void> build();
  // What the rank computes: its shard, or the whole model.
  const model::Model& model_of(RankId rank) const {
    return shards_.empty() ? *model_ : *shards_[rank.index()];
  }
  // Per rank: what moves its bytes, and the model that it runs.
  Result<void> build_accelerators(std::uint64_t weight_seed);
  const model::Model& runner_of(RankId rank) const {
    return runners_.empty() ? model_of(rank) : *runners_[rank.index()];
  }
  // Of free-running devices: false if none moved.
  bool run_devices();
  // Waits for what is under way. False: streams are held, and nothing will let them go.
  bool wait_for_devices();
  oracle::JudgeConfig judge_config() const;
  void emit(RankId rank, RequestId request, EventBody body) override;
  // What the device of `rank` reports becomes a violation.
  RankReports reports(RankId rank);
  oracle::Violation found_now(const std::string& invariant, std::string expected,
                              std::string actual) const;
  template <class Action>
  void guarded(Action action);
  void watch_for_stall();
  void watch_for_endlessness();
  void stall(const std::string& expected, const std::string& actual);
  Result<void> restart_engine(const std::optional<model::ModelSpec>& model,
                              const std::optional<CacheConfig>& cache);
  void inject(const FaultRequest& fault);
  void evict_one(std::optional<Component> component);
  // What faults asked for that must not happen inside a step.
  void take_restart();
  // What a LOOKUP of this request on this rank may have found leaves the store.
  void lose_tail(RankId rank, RequestId request);

  WorldConfig config_;
  EventLoop loop_;
  StepId step_;
  std::uint64_t last_progress_ = 0;  // step in which something was accepted or settled
  bool over_ = false;
  bool is_between_engines_ = false;  // what an engine gives back while it ends is no event
  std::optional<Error> refusal_;
  std::deque<FaultRequest> restarts_;  // asked for by faults, and not done yet
  std::uint64_t events_ = 0;
  std::uint64_t moves_ = 0;  // steps of the engine and events of the clock

  std::map<RequestId, std::string> names_;
  std::map<std::string, RequestId> ids_;
  std::map<RequestId, RequestNamespace> names_of_;
  std::map<RequestId, std::vector<TokenId>> tokens_;
  FaultPlan faults_;
  std::unique_ptr<model::Model> model_;
  std::vector<std::unique_ptr<model::Model>> shards_;  // one per rank, or none
  // The oracle may still name them until it is reconfigured.
  std::vector<std::unique_ptr<model::Model>> retired_models_;
  Geometry geometry_;
  std::string layout_;
  std::unique_ptr<MemoryStore> store_;
  std::vector<std::unique_ptr<Accelerator>> accelerators_;  // one per rank
  std::vector<std::unique_ptr<model::Model>> runners_;      // one per rank, where kernels run
  std::vector<std::unique_ptr<RankHost>> ranks_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<oracle::Judge> judge_;
  DigestObserver digest_;
  ResultCollector collector_;
  Coverage coverage_;
  EventMatcher matcher_;
};

}  // namespace lockstep::sim
