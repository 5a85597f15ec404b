// What goes wrong in a generated scenario.
#include "sim/fault_plan.h"
#include "sim/generate_parts.h"

namespace lockstep::sim {

namespace {

struct Site {
  FaultPhase on;
  std::string_view kind;
};

constexpr std::array kPhases{FaultPhase::match,   FaultPhase::lookup,  FaultPhase::load,
                             FaultPhase::commit,  FaultPhase::offload, FaultPhase::cow,
                             FaultPhase::forward, FaultPhase::evict,   FaultPhase::alloc,
                             FaultPhase::vote,    FaultPhase::event};
constexpr std::array<std::string_view, 11> kFaultKinds{
    "fail",  "short",  "corrupt_bit", "delay_us", "late_us", "reorder",
    "stale", "refuse", "flush",       "cancel",   "retract"};
constexpr std::array<std::int64_t, 4> kDelays{1, 50, 1000, 5000};

class Faults {
 public:
  Faults(Draw draw, Scenario& scenario) : draw_(draw), scenario_(scenario) {
    for (const Step& step : scenario.steps) {
      if (const auto* submit = std::get_if<SubmitStep>(&step)) requests_.push_back(submit->request);
    }
  }

  // A disruption that may come after events of any phase.
  void draw_disruption(std::string_view kind) {
    const std::int64_t shots = draw_.between(1, 3);
    for (std::int64_t i = 0; i < shots; ++i) {
      add(draw_.one_in(2) ? FaultPhase::event : draw_.of(kPhases), std::string(kind));
    }
  }

  // All sites of that phase that this version can inject at, as far as the seed draws them.
  void draw_phase(FaultPhase phase, std::int64_t rarity) {
    for (std::string_view kind : kFaultKinds) {
      if (!draw_.one_in(rarity)) continue;
      const std::int64_t shots = draw_.between(1, 3);
      for (std::int64_t i = 0; i < shots; ++i) add(phase, std::string(kind));
    }
  }

 private:
  void add(FaultPhase phase, const std::string& kind) {
    FaultSpec fault;
    fault.on = phase;
    fault.action.kind = kind;
    fault.nth = 1 + draw_.logarithmic(phase == FaultPhase::event ? 9 : 4);
    if (kind == "short") fault.action.number = draw_.logarithmic(7);
    if (kind == "corrupt_bit") fault.action.number = draw_.between(0, 511);
    if (kind == "delay_us" || kind == "late_us") fault.action.number = draw_.of(kDelays);
    if (kind == "cancel" || kind == "retract") fault.action.request = draw_.of(requests_);
    if (kind == "evict" && draw_.one_in(2)) fault.component = draw_.of(kComponents);
    if (kind == "shrink") shrink(fault.action);
    if (kind == "restart") fault.restart = restart();
    if (phase == FaultPhase::load || phase == FaultPhase::offload || phase == FaultPhase::alloc) {
      narrow(fault);
    }
    if (FaultPlan::check({fault}).ok()) scenario_.faults.push_back(fault);
  }

  // To any size that is left; who does not fit any more is refused.
  void shrink(FaultAction& action) {
    const CacheConfig& cache = scenario_.cache;
    action.pool = draw_.of(kComponents);
    const Rows rows = action.pool == Component::full  ? cache.full_pages
                      : action.pool == Component::swa ? cache.swa_pages
                                                      : cache.mamba_slots;
    action.number = draw_.between(1, rows.value());
  }

  RestartStep restart() {
    RestartStep step;
    step.store = draw_.one_in(3);
    step.engine = !step.store || draw_.one_in(2);
    step.keep = !step.store || draw_.one_in(2);
    return step;
  }

  void narrow(FaultSpec& fault) {
    const bool is_of_world = fault.action.kind == "evict" || fault.action.kind == "shrink" ||
                             fault.action.kind == "restart";
    if (is_of_world) return;
    if (draw_.one_in(2)) {
      fault.component = kComponents[static_cast<std::size_t>(draw_.between(0, 2))];
    }
    if (scenario_.ranks > 1 && !draw_.one_in(4)) {
      fault.rank = RankId{static_cast<std::uint32_t>(draw_.between(0, scenario_.ranks - 1))};
    }
    // A flush at every load, or refusing every allocation, would let nothing move.
    const std::string& kind = fault.action.kind;
    const bool is_transfer =
        kind != "flush" && kind != "cancel" && kind != "retract" && kind != "refuse";
    if (is_transfer && draw_.one_in(8)) fault.nth.reset();
  }

  Draw draw_;
  Scenario& scenario_;
  std::vector<std::string> requests_;
};

bool is_wanted(const FeatureSet& features, FaultPhase phase) {
  switch (phase) {
    case FaultPhase::load:
      return has(features, Feature::fault_load);
    case FaultPhase::offload:
      return has(features, Feature::fault_offload);
    case FaultPhase::alloc:
      return has(features, Feature::fault_alloc);
    case FaultPhase::lookup:
      return has(features, Feature::fault_lookup);
    default:
      return has(features, Feature::fault_event);
  }
}

// The phases whose faults only ask for what a step could ask for too.
bool is_event(FaultPhase phase) {
  return phase != FaultPhase::load && phase != FaultPhase::offload && phase != FaultPhase::alloc &&
         phase != FaultPhase::lookup;
}

}  // namespace

void draw_faults(const FeatureSet& features, Draw draw, Scenario& scenario) {
  Faults faults(draw, scenario);
  for (FaultPhase phase : kPhases) {
    if (is_wanted(features, phase)) faults.draw_phase(phase, is_event(phase) ? 12 : 3);
  }
  if (has(features, Feature::fault_evict)) faults.draw_disruption("evict");
  if (has(features, Feature::fault_shrink)) faults.draw_disruption("shrink");
  if (has(features, Feature::fault_restart)) faults.draw_disruption("restart");
}

}  // namespace lockstep::sim
