// Sweeps faults and schedules over scenarios. Whatever happens, nothing may be violated (semantics
// 7), and under any schedule of the streams a scenario must come out as it expects. Faults come
// with 1 and with 2 ranks.
//
//   faults  the n-th operation of every kind goes wrong, for every n: allocations, answers of
//           LOOKUP, reads, puts
//   events  after the n-th event the device is flushed, units are evicted, the engine or the store
//           restarts, a pool shrinks, or a request is cancelled; n takes at most --most values,
//           evenly spread over the run
//   schedules  no fault: the streams of the device run in every order that a schedule makes, with
//              20 seeds each
//
// usage: sweep faults|events|schedules [--most N] FILE... ; prints one line per scenario, and per
// violated run the fault or the schedule that can be pasted into it; exits 1 if there is one
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/scenario_fields.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {
namespace {

struct Tally {
  std::uint64_t runs = 0;
  std::uint64_t failed = 0;
  void add(const Tally& other) {
    runs += other.runs;
    failed += other.failed;
  }
};

FaultSpec fault(FaultPhase phase, const std::string& kind, std::int64_t number = 0) {
  FaultSpec spec;
  spec.on = phase;
  spec.action.kind = kind;
  spec.action.number = number;
  return spec;
}

// Every operation that this version can make fail, and how.
std::vector<FaultSpec> operation_faults() {
  std::vector<FaultSpec> faults;
  for (Component component : kComponents) {
    FaultSpec refuse = fault(FaultPhase::alloc, "refuse");
    refuse.component = component;
    faults.push_back(refuse);
  }
  faults.push_back(fault(FaultPhase::lookup, "fail"));
  faults.push_back(fault(FaultPhase::lookup, "stale"));
  faults.push_back(fault(FaultPhase::load, "fail"));
  faults.push_back(fault(FaultPhase::load, "short", 8));
  faults.push_back(fault(FaultPhase::load, "corrupt_bit", 5));
  faults.push_back(fault(FaultPhase::offload, "fail"));
  for (FaultPhase transfer : {FaultPhase::load, FaultPhase::offload}) {
    faults.push_back(fault(transfer, "delay_us", 500));
    faults.push_back(fault(transfer, "late_us", 500));
    faults.push_back(fault(transfer, "reorder"));
  }
  return faults;
}

FaultSpec restart_after_event(const RestartStep& what) {
  FaultSpec spec = fault(FaultPhase::event, "restart");
  spec.restart = what;
  return spec;
}

std::vector<FaultSpec> restarts() {
  RestartStep engine;
  engine.engine = true;
  RestartStep kept;
  kept.store = true;
  RestartStep lost = kept;
  lost.keep = false;
  return {restart_after_event(engine), restart_after_event(kept), restart_after_event(lost)};
}

Rows pool_size(const CacheConfig& cache, Component component) {
  if (component == Component::full) return cache.full_pages;
  return component == Component::swa ? cache.swa_pages : cache.mamba_slots;
}

std::vector<FaultSpec> event_faults(const Scenario& scenario) {
  std::vector<FaultSpec> faults = restarts();
  faults.push_back(fault(FaultPhase::event, "flush"));
  faults.push_back(fault(FaultPhase::event, "evict"));
  for (Component component : kComponents) {
    FaultSpec shrink = fault(FaultPhase::event, "shrink");
    shrink.action.pool = component;
    shrink.action.number =
        std::max<std::int64_t>(1, pool_size(scenario.cache, component).value() / 2);
    faults.push_back(shrink);
  }
  for (const Step& step : scenario.steps) {
    const auto* submit = std::get_if<SubmitStep>(&step);
    if (submit == nullptr) continue;
    FaultSpec cancel = fault(FaultPhase::event, "cancel");
    cancel.action.request = submit->request;
    faults.push_back(cancel);
  }
  return faults;
}

std::int64_t injections(const RunResult& result) {
  std::int64_t count = 0;
  for (const auto& [action, times] : result.faults_injected) count += times;
  return count;
}

// A point that a scenario waits for may not come any more once a fault has changed the story (U1):
// that is no fault of the program.
bool counts(const oracle::Violation& violation, bool is_disturbed) {
  return !is_disturbed || violation.invariant != "U1";
}

// Counts the run, and says why if it could not be made, was violated or is not as expected.
void judge(const Scenario& scenario, const std::string& variant, const Result<RunResult>& result,
           bool is_disturbed, Tally& tally) {
  ++tally.runs;
  std::string what;
  if (!result) {
    what = result.error().message;
  } else {
    const auto first = std::ranges::find_if(
        result->violations, [&](const auto& each) { return counts(each, is_disturbed); });
    if (first != result->violations.end()) {
      what = first->invariant + " at step " + std::to_string(first->step.value()) + ", expected " +
             first->expected + ", found " + first->actual;
    } else if (!is_disturbed && !result->unexpected.empty()) {
      what = result->unexpected.front();
    } else {
      return;
    }
  }
  ++tally.failed;
  std::printf("  %s ranks %d %s: %s\n", scenario.name.c_str(), static_cast<int>(scenario.ranks),
              variant.c_str(), what.c_str());
}

// Runs one variant; true if its fault fired, besides the `own` ones of the scenario.
bool run_one(const Scenario& scenario, const FaultSpec& spec, std::int64_t own, Tally& tally) {
  Scenario variant = scenario;
  variant.expect.reset();
  variant.faults.push_back(spec);
  const Result<RunResult> result = run_scenario(variant, {});
  if (result && injections(*result) <= own) return false;
  judge(scenario, to_text(fault_codec().write(spec)), result, true, tally);
  return result.ok();
}

// For n = 1, 1 + stride, ..., at most `most` of them, while there is an n-th occurrence.
void sweep_nth(const Scenario& scenario, FaultSpec spec, std::int64_t own, std::int64_t stride,
               std::int64_t most, Tally& tally) {
  std::int64_t nth = 1;
  do {
    spec.nth = nth;
    nth += stride;
  } while (run_one(scenario, spec, own, tally) && nth / stride < most);
}

Tally sweep_faults(Scenario scenario, bool events, std::int64_t most) {
  Tally tally;
  for (std::int64_t ranks : {1, 2}) {
    const bool fits = std::ranges::all_of(scenario.faults, [&](const FaultSpec& own) {
      return !own.rank || own.rank->value() < ranks;
    });
    if (!fits) continue;
    scenario.ranks = ranks;
    const Result<RunResult> undisturbed = run_scenario(scenario, {});
    if (!undisturbed) continue;
    const std::int64_t own = injections(*undisturbed);
    const auto count = static_cast<std::int64_t>(undisturbed->events);
    // Odd, since with two ranks every other event is the second one's.
    const std::int64_t stride = events ? count / most | 1 : 1;
    for (const FaultSpec& spec : events ? event_faults(scenario) : operation_faults()) {
      sweep_nth(scenario, spec, own, stride, most, tally);
    }
  }
  return tally;
}

// Every mode with every seed; "priority" with every bug depth that the design names.
std::vector<std::pair<std::string, ScheduleSpec>> schedules() {
  std::vector<std::pair<std::string, ScheduleSpec>> specs;
  specs.push_back({"fifo", {.mode = ScheduleMode::fifo}});
  specs.push_back({"random", {.mode = ScheduleMode::random}});
  for (std::int64_t depth : {1, 2, 3}) {
    specs.push_back({"priority depth " + std::to_string(depth),
                     {.mode = ScheduleMode::priority, .depth = depth}});
  }
  specs.push_back({"depth_first depth 2", {.mode = ScheduleMode::depth_first, .depth = 2}});
  return specs;
}

Tally sweep_schedules(Scenario scenario) {
  constexpr std::uint64_t kSeeds = 20;
  Tally tally;
  for (const auto& [name, schedule] : schedules()) {
    scenario.schedule = schedule;
    for (scenario.seed = 1; scenario.seed <= kSeeds; ++scenario.seed) {
      judge(scenario, "schedule " + name + " seed " + std::to_string(scenario.seed),
            run_scenario(scenario, {}), false, tally);
    }
  }
  return tally;
}

int usage() {
  std::fprintf(stderr, "usage: sweep faults|events|schedules [--most N] FILE...\n");
  return 2;
}

int sweep(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) return usage();
  const std::string& what = arguments[0];
  std::size_t first = 1;
  std::int64_t most = 1 << 20;
  if (arguments[1] == "--most" && arguments.size() > 3) {
    most = std::max(1, std::atoi(arguments[2].c_str()));
    first = 3;
  }
  Tally total;
  for (std::size_t i = first; i < arguments.size(); ++i) {
    const Result<Scenario> scenario = read_scenario_file(arguments[i]);
    if (!scenario) {
      std::fprintf(stderr, "%s\n", scenario.error().message.c_str());
      return 2;
    }
    const Tally tally = what == "schedules" ? sweep_schedules(*scenario)
                                            : sweep_faults(*scenario, what == "events", most);
    std::printf("%s: %d runs, %d violated\n", scenario->name.c_str(), static_cast<int>(tally.runs),
                static_cast<int>(tally.failed));
    std::fflush(stdout);
    total.add(tally);
  }
  std::printf("%d passed, %d failed\n", static_cast<int>(total.runs - total.failed),
              static_cast<int>(total.failed));
  return total.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::sim

int main(int count, char** arguments) {
  return lockstep::sim::sweep({arguments + 1, arguments + count});
}
