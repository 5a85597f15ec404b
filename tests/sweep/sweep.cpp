// Sweeps faults over scenarios: the n-th operation of every phase goes wrong, for every n, with 1
// and 2 ranks; and a flush or a cancellation comes after the n-th event. Whatever happens, nothing
// may be violated (semantics 7). And under any schedule of the streams a scenario must come out as
// it expects.
//
// usage: sweep faults|events|schedules FILE... ; prints one line per scenario, exits 1 if any run
// was violated
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {
namespace {

struct Tally {
  std::uint64_t runs = 0;
  std::uint64_t failed = 0;
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
  faults.push_back(fault(FaultPhase::load, "fail"));
  faults.push_back(fault(FaultPhase::load, "short", 8));
  faults.push_back(fault(FaultPhase::load, "corrupt_bit", 5));
  faults.push_back(fault(FaultPhase::load, "delay_us", 500));
  faults.push_back(fault(FaultPhase::offload, "fail"));
  faults.push_back(fault(FaultPhase::offload, "delay_us", 500));
  faults.push_back(fault(FaultPhase::lookup, "stale"));
  return faults;
}

std::string describe(const FaultSpec& spec) {
  std::string text =
      "\"on\": " + std::to_string(static_cast<int>(spec.on)) + ", \"do\": " + spec.action.kind;
  if (spec.component) text += " " + std::string(name(*spec.component));
  return text + " nth " + std::to_string(spec.nth.value_or(0)) + " " + spec.action.request;
}

std::int64_t injections(const RunResult& result) {
  std::int64_t count = 0;
  for (const auto& [action, times] : result.faults_injected) count += times;
  return count;
}

// False, and a line that says why, if the run could not be made or is not as expected; where
// nothing is expected, no violation is.
bool is_clean(const Scenario& scenario, const std::string& variant,
              const Result<RunResult>& result) {
  if (!result) {
    std::printf("  %s: %s\n", scenario.name.c_str(), result.error().message.c_str());
    return false;
  }
  if (result->unexpected.empty()) return true;
  if (result->pass()) {
    std::printf("  %s {%s}: %s\n", scenario.name.c_str(), variant.c_str(),
                result->unexpected.front().c_str());
    return false;
  }
  const oracle::Violation& first = result->violations.front();
  std::printf("  %s ranks %d {%s}: %s at step %d, expected %s, found %s\n", scenario.name.c_str(),
              static_cast<int>(scenario.ranks), variant.c_str(), first.invariant.c_str(),
              static_cast<int>(first.step.value()), first.expected.c_str(), first.actual.c_str());
  return false;
}

// Runs one variant; true if its fault fired, besides the `own` ones of the scenario.
bool run_one(const Scenario& scenario, const FaultSpec& spec, std::int64_t own, Tally& tally) {
  Scenario variant = scenario;
  variant.expect.reset();
  variant.faults.push_back(spec);
  const Result<RunResult> result = run_scenario(variant, {});
  if (result && injections(*result) <= own) return false;
  const bool clean = is_clean(scenario, describe(spec), result);
  if (!result) return false;
  ++tally.runs;
  if (!clean) ++tally.failed;
  return true;
}

void sweep_nth(const Scenario& scenario, FaultSpec spec, Tally& tally) {
  const Result<RunResult> undisturbed = run_scenario(scenario, {});
  if (!undisturbed) return;
  for (std::int64_t nth = 1;; ++nth) {
    spec.nth = nth;
    if (!run_one(scenario, spec, injections(*undisturbed), tally)) return;
  }
}

Tally sweep_operations(Scenario scenario) {
  Tally tally;
  for (std::int64_t ranks : {1, 2}) {
    scenario.ranks = ranks;
    for (const FaultSpec& spec : operation_faults()) sweep_nth(scenario, spec, tally);
  }
  return tally;
}

// A scenario that waits for a point of a request cannot go on without it (U1): such a request is
// not cancelled.
std::set<std::string> awaited(const Scenario& scenario) {
  std::set<std::string> requests;
  for (const Step& step : scenario.steps) {
    if (const auto* run = std::get_if<RunStep>(&step); run != nullptr && run->until) {
      requests.insert(run->until->first);
    }
    if (const auto* hold = std::get_if<HoldStep>(&step)) requests.insert(hold->request);
  }
  return requests;
}

Tally sweep_events(const Scenario& scenario) {
  Tally tally;
  sweep_nth(scenario, fault(FaultPhase::event, "flush"), tally);
  const std::set<std::string> kept = awaited(scenario);
  for (const Step& step : scenario.steps) {
    const auto* submit = std::get_if<SubmitStep>(&step);
    if (submit == nullptr || kept.contains(submit->request)) continue;
    FaultSpec cancel = fault(FaultPhase::event, "cancel");
    cancel.action.request = submit->request;
    sweep_nth(scenario, cancel, tally);
  }
  return tally;
}

// Every mode with every seed; "priority" with every bug depth that the design names.
std::vector<ScheduleSpec> schedules() {
  std::vector<ScheduleSpec> specs;
  specs.push_back({.mode = ScheduleMode::fifo});
  specs.push_back({.mode = ScheduleMode::random});
  for (std::int64_t depth : {1, 2, 3}) {
    specs.push_back({.mode = ScheduleMode::priority, .depth = depth});
  }
  specs.push_back({.mode = ScheduleMode::depth_first, .depth = 2});
  return specs;
}

Tally sweep_schedules(Scenario scenario) {
  constexpr std::uint64_t kSeeds = 20;
  Tally tally;
  for (const ScheduleSpec& schedule : schedules()) {
    scenario.schedule = schedule;
    for (scenario.seed = 1; scenario.seed <= kSeeds; ++scenario.seed) {
      ++tally.runs;
      const std::string variant = "schedule " + std::to_string(static_cast<int>(schedule.mode)) +
                                  " depth " + std::to_string(schedule.depth) + " seed " +
                                  std::to_string(scenario.seed);
      if (!is_clean(scenario, variant, run_scenario(scenario, {}))) ++tally.failed;
    }
  }
  return tally;
}

int sweep(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: sweep faults|events|schedules FILE...\n");
    return 2;
  }
  const std::string what = arguments[1];
  Tally total;
  for (int i = 2; i < count; ++i) {
    const Result<Scenario> scenario = read_scenario_file(arguments[i]);
    if (!scenario) {
      std::fprintf(stderr, "%s\n", scenario.error().message.c_str());
      return 2;
    }
    const Tally tally = what == "schedules" ? sweep_schedules(*scenario)
                        : what == "events"  ? sweep_events(*scenario)
                                            : sweep_operations(*scenario);
    std::printf("%s: %d runs, %d violated\n", scenario->name.c_str(), static_cast<int>(tally.runs),
                static_cast<int>(tally.failed));
    total.runs += tally.runs;
    total.failed += tally.failed;
  }
  std::printf("%d passed, %d failed\n", static_cast<int>(total.runs - total.failed),
              static_cast<int>(total.failed));
  return total.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::sim

int main(int count, char** arguments) {
  return lockstep::sim::sweep(count, arguments);
}
