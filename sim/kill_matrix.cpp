#include "sim/kill_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <set>

#include "sim/defects/registry.h"
#include "sim/generate.h"
#include "sim/parallel.h"

namespace lockstep::sim {

namespace {

constexpr std::array kKillProfiles{Profile::smoke, Profile::nightly, Profile::ranks,
                                   Profile::pressure, Profile::races};
constexpr std::string_view kNumericPreset = "inkling-pico";
constexpr double kMeanKlAllowed = 1e-9;
constexpr std::size_t kMostFalseAlarms = 10;

struct Detector {
  std::string_view name;
  std::string_view invariants;  // separated by spaces; a letter stands for all that begin with it
};
constexpr std::array kDetectors{
    Detector{"bits", "D1 D2"}, Detector{"KL", "D3"},
    Detector{"boundary", "B"}, Detector{"conservation", "C1 C2 C3 C4 C5 C6"},
    Detector{"store", "S"},    Detector{"reuse", "R"},
    Detector{"race", "H"},     Detector{"ranks", "K"},
    Detector{"liveness", "L"}, Detector{"contracts", "CHECK: ACCESS CANARY U1"},
};

bool owns(const Detector& detector, std::string_view invariant) {
  std::string_view rest = detector.invariants;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view name = rest.substr(0, end);
    if (name.size() == 1 || name.back() == ':') {
      if (invariant.starts_with(name)) return true;
    } else if (invariant == name) {
      return true;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

RunOptions bounded(const KillOptions& options) {
  RunOptions run;
  run.most_events = options.most_events;
  return run;
}

std::set<std::string> names_of(const std::vector<oracle::Violation>& violations) {
  std::set<std::string> names;
  for (const oracle::Violation& violation : violations) names.insert(violation.invariant);
  return names;
}

void note(const std::vector<oracle::Violation>& violations, DefectOutcome& outcome) {
  ++outcome.seeds_run;
  if (violations.empty()) return;
  ++outcome.detections;
  if (!outcome.seeds_needed) {
    outcome.seeds_needed = outcome.seeds_run;
    outcome.by = violations.front().invariant;
  }
  const std::set<std::string> names = names_of(violations);
  for (const std::string& name : names) ++outcome.seen[name];
  if (!outcome.required_after && names.contains(std::string(outcome.defect.required))) {
    outcome.required_after = outcome.seeds_run;
  }
}

// Mean over all positions that the run compared; none where nothing was.
std::optional<double> mean_kl(const RunResult& result) {
  double sum = 0;
  std::uint64_t positions = 0;
  for (const auto& [name, request] : result.requests) {
    const oracle::RequestComparison& comparison = request.comparison;
    if (!comparison.kl_mean) continue;
    sum += *comparison.kl_mean * static_cast<double>(comparison.logprobs_compared);
    positions += comparison.logprobs_compared;
  }
  if (positions == 0) return std::nullopt;
  return sum / static_cast<double>(positions);
}

// The check that engines have: one figure per run. What the invariants see is noted, too.
void measure_kl(const KillOptions& options, DefectOutcome& outcome) {
  for (std::uint64_t i = 0; i < options.kl_seeds; ++i) {
    Scenario scenario =
        generate({Profile::numeric, std::string(kNumericPreset)}, options.first + i);
    scenario.defects = {std::string(outcome.defect.id)};
    const Result<RunResult> result = run_scenario(scenario, bounded(options));
    if (!result) continue;
    for (const std::string& name : names_of(result->violations)) ++outcome.seen[name];
    const std::optional<double> kl = mean_kl(*result);
    outcome.kl_sees = outcome.kl_sees || (kl && !(*kl < kMeanKlAllowed));
  }
}

DefectOutcome measure(const KillOptions& options, const Defect& defect) {
  DefectOutcome outcome;
  outcome.defect = defect;
  while (outcome.seeds_run < options.seeds &&
         !(outcome.required_fired() && outcome.detections >= options.detections)) {
    Scenario scenario = kill_scenario(options.first + outcome.seeds_run);
    scenario.defects = {std::string(defect.id)};
    const Result<RunResult> result = run_scenario(scenario, bounded(options));
    note(result ? result->violations : std::vector<oracle::Violation>(), outcome);
  }
  measure_kl(options, outcome);
  return outcome;
}

std::vector<FalseAlarm> run_clean(const KillOptions& options) {
  std::mutex mutex;
  std::vector<FalseAlarm> alarms;
  for_each_parallel(options.clean_seeds, options.jobs, [&](std::size_t i) {
    const std::uint64_t seed = options.first + i;
    RunOptions run = bounded(options);
    run.stop_at_first = true;
    const Result<RunResult> result = run_scenario(kill_scenario(seed), run);
    if (result && result->pass()) return;
    const std::lock_guard lock(mutex);
    alarms.push_back({seed, result ? result->violations.front().invariant : "refused"});
  });
  std::ranges::sort(alarms, {}, &FalseAlarm::seed);
  alarms.resize(std::min(alarms.size(), kMostFalseAlarms));
  return alarms;
}

std::vector<std::uint64_t> needed(const KillMatrix& matrix) {
  std::vector<std::uint64_t> needed;
  for (const DefectOutcome& outcome : matrix.outcomes) {
    if (outcome.required_after) needed.push_back(*outcome.required_after);
  }
  std::ranges::sort(needed);
  return needed;
}

}  // namespace

bool DefectOutcome::seen_without(std::string_view detector) const {
  return std::ranges::any_of(
      seen, [&](const auto& entry) { return detector_of(entry.first) != detector; });
}

bool KillMatrix::good() const {
  return false_alarms.empty() && std::ranges::all_of(outcomes, &DefectOutcome::required_fired);
}

std::uint64_t KillMatrix::median_seeds() const {
  const std::vector<std::uint64_t> sorted = needed(*this);
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

std::uint64_t KillMatrix::worst_seeds() const {
  const std::vector<std::uint64_t> sorted = needed(*this);
  return sorted.empty() ? 0 : sorted.back();
}

std::vector<std::string_view> detectors() {
  std::vector<std::string_view> names;
  for (const Detector& detector : kDetectors) names.push_back(detector.name);
  return names;
}

std::string_view detector_of(std::string_view invariant) {
  for (const Detector& detector : kDetectors) {
    if (owns(detector, invariant)) return detector.name;
  }
  return "none";
}

Scenario kill_scenario(std::uint64_t seed) {
  return generate({kKillProfiles[seed % kKillProfiles.size()], "fingerprint"}, seed);
}

KillMatrix measure_kills(const KillOptions& options) {
  std::vector<Defect> wanted;
  for (const Defect& defect : all_defects()) {
    const bool is_wanted =
        options.only.empty() || std::ranges::find(options.only, defect.id) != options.only.end();
    if (is_wanted) wanted.push_back(defect);
  }
  KillMatrix matrix;
  matrix.outcomes.resize(wanted.size());
  std::mutex mutex;
  std::uint64_t done = 0;
  for_each_parallel(wanted.size(), options.jobs, [&](std::size_t i) {
    matrix.outcomes[i] = measure(options, wanted[i]);
    const std::lock_guard lock(mutex);
    if (options.progress) options.progress(++done, wanted.size());
  });
  matrix.clean_seeds = options.clean_seeds;
  matrix.false_alarms = run_clean(options);
  return matrix;
}

}  // namespace lockstep::sim
