#include "sim/features.h"

#include <algorithm>
#include <array>
#include <set>

#include "model/config.h"
#include "model/model.h"
#include "sim/prompt_length.h"

namespace lockstep::sim {

namespace {

constexpr std::array<std::string_view, kFeatureCount> kNames{"shared prompts",
                                                             "repeated prompt",
                                                             "conversation",
                                                             "fork",
                                                             "extra key",
                                                             "cache salt",
                                                             "hold",
                                                             "cancel",
                                                             "retract",
                                                             "flush",
                                                             "evict device",
                                                             "evict store",
                                                             "restart engine",
                                                             "restart store",
                                                             "restart changed",
                                                             "fault load",
                                                             "fault offload",
                                                             "fault alloc",
                                                             "fault lookup",
                                                             "fault event",
                                                             "fault evict",
                                                             "fault shrink",
                                                             "fault restart",
                                                             "many ranks",
                                                             "many running",
                                                             "tight full",
                                                             "tight swa",
                                                             "tight mamba",
                                                             "small chunk",
                                                             "page over window",
                                                             "grid over page",
                                                             "checkpoints every",
                                                             "overlap barrier",
                                                             "reoffload never",
                                                             "objects descending",
                                                             "publish after load",
                                                             "ahead",
                                                             "jitter",
                                                             "free schedule",
                                                             "no swa",
                                                             "no recurrence",
                                                             "slow store",
                                                             "full store",
                                                             "speculation"};

// A state slot each for tree, transfer and request, twice.
constexpr Rows kTightSlots{6};
constexpr double kSlowLatency = 1000;

void set(FeatureSet& features, Feature feature, bool on = true) {
  if (on) features.set(static_cast<std::size_t>(feature));
}

Feature feature_of(const FaultSpec& fault) {
  const std::string& kind = fault.action.kind;
  if (kind == "evict") return Feature::fault_evict;
  if (kind == "shrink") return Feature::fault_shrink;
  if (kind == "restart") return Feature::fault_restart;
  switch (fault.on) {
    case FaultPhase::load:
      return Feature::fault_load;
    case FaultPhase::offload:
      return Feature::fault_offload;
    case FaultPhase::alloc:
      return Feature::fault_alloc;
    case FaultPhase::lookup:
      return Feature::fault_lookup;
    default:
      return Feature::fault_event;
  }
}

Feature feature_of(MoveKind kind) {
  switch (kind) {
    case MoveKind::cancel:
      return Feature::cancel;
    case MoveKind::retract:
      return Feature::retract;
    case MoveKind::fork:
      return Feature::fork;
    default:
      return Feature::hold;
  }
}

class StepFeatures {
 public:
  explicit StepFeatures(FeatureSet& features) : features_(features) {}

  void operator()(const SubmitStep& step) {
    set(features_, Feature::repeated_prompt, !prompts_.insert(step.prompt).second);
    set(features_, Feature::extra_key, step.extra_key.has_value());
    set(features_, Feature::cache_salt, step.cache_salt.has_value());
  }
  void operator()(const RunStep&) {}
  void operator()(const FlushStep&) { set(features_, Feature::flush); }
  void operator()(const HoldStep&) { set(features_, Feature::hold); }
  void operator()(const ReleaseStep&) { set(features_, Feature::hold); }
  void operator()(const EvictStep& step) {
    set(features_, step.from_store ? Feature::evict_store : Feature::evict_device);
  }
  void operator()(const ForkStep&) { set(features_, Feature::fork); }
  void operator()(const CancelStep&) { set(features_, Feature::cancel); }
  void operator()(const RetractStep&) { set(features_, Feature::retract); }
  void operator()(const RestartStep& step) {
    set(features_, Feature::restart_engine, step.engine);
    set(features_, Feature::restart_store, step.store);
    set(features_, Feature::restart_changed, step.model.has_value() || step.cache.has_value());
  }
  void operator()(const PickStep& step) {
    if (step.of) set(features_, feature_of(*step.of));
  }

 private:
  FeatureSet& features_;
  std::set<std::string> prompts_;
};

void add_sizes(const Scenario& scenario, const Geometry& geometry, FeatureSet& features) {
  const CacheConfig& cache = scenario.cache;
  const Tokens longest = longest_request(scenario);
  const Pages pages = geometry.pages_touched(longest);
  const Pages window = std::min(pages, geometry.window_pages() * 2 + Pages{1});
  set(features, Feature::tight_full, cache.full_pages < Rows{2 * pages.value()});
  set(features, Feature::tight_swa, geometry.has_swa && cache.swa_pages < Rows{2 * window.value()});
  set(features, Feature::tight_mamba, geometry.has_mamba && cache.mamba_slots < kTightSlots);
  set(features, Feature::small_chunk, cache.prefill_chunk < longest);
  set(features, Feature::page_over_window, geometry.has_swa && cache.page > geometry.window);
  set(features, Feature::grid_over_page, geometry.prefill_grid() > cache.page);
  set(features, Feature::no_swa, !geometry.has_swa);
  set(features, Feature::no_recurrence, !geometry.has_mamba);
}

bool drafts_anything(const Scenario& scenario) {
  return std::ranges::any_of(scenario.speculation,
                             [](const SpeculationStep& step) { return step.draft > Tokens{0}; });
}

void add_policies(const Scenario& scenario, FeatureSet& features) {
  const CacheConfig& cache = scenario.cache;
  set(features, Feature::many_ranks, scenario.ranks > 1);
  set(features, Feature::many_running, cache.max_running > 1);
  set(features, Feature::checkpoints_every, cache.checkpoints == CheckpointPolicy::every);
  set(features, Feature::overlap_barrier, cache.overlap == OverlapPolicy::barrier);
  set(features, Feature::reoffload_never, cache.reoffload == ReoffloadPolicy::never);
  set(features, Feature::objects_descending, cache.object_order == ObjectOrder::descending);
  set(features, Feature::publish_after_load, cache.publish == PublishPolicy::after_load);
  set(features, Feature::ahead, cache.ahead > 0);
  set(features, Feature::speculation, drafts_anything(scenario));
  set(features, Feature::jitter, scenario.schedule.jitter > 0);
  set(features, Feature::free_schedule, scenario.schedule.mode != ScheduleMode::fifo);
  set(features, Feature::slow_store, scenario.store.latency_us >= kSlowLatency);
  set(features, Feature::full_store, scenario.store.capacity_mib == 0);
}

std::optional<Geometry> geometry_of(const Scenario& scenario) {
  const auto config = model::resolve_model_config(scenario.model);
  if (!config) return std::nullopt;
  Geometry geometry = model::geometry_of(*config);
  geometry.page = scenario.cache.page;
  return geometry;
}

}  // namespace

std::string_view name(Feature feature) {
  return kNames[static_cast<std::size_t>(feature)];
}

bool exclude_each_other(Feature one, Feature other) {
  constexpr std::array kExclusive{
      // Without a window its pages cannot be few, and no page is longer than it.
      std::pair{Feature::no_swa, Feature::tight_swa},
      std::pair{Feature::no_swa, Feature::page_over_window},
      // Without states their slots cannot be few, and their grid is the page.
      std::pair{Feature::no_recurrence, Feature::tight_mamba},
      std::pair{Feature::no_recurrence, Feature::grid_over_page}};
  return std::ranges::any_of(kExclusive, [&](const auto& pair) {
    return pair == std::pair{one, other} || pair == std::pair{other, one};
  });
}

FeatureSet features_of(const Scenario& scenario) {
  FeatureSet features;
  for (const auto& [prompt, spec] : scenario.prompts) {
    set(features, Feature::shared_prompts, spec.from.has_value());
    set(features, Feature::conversation, spec.output_of.has_value());
  }
  StepFeatures of_step(features);
  for (const Step& step : scenario.steps) std::visit(of_step, step);
  for (const FaultSpec& fault : scenario.faults) set(features, feature_of(fault));
  add_policies(scenario, features);
  if (const auto geometry = geometry_of(scenario)) add_sizes(scenario, *geometry, features);
  return features;
}

}  // namespace lockstep::sim
