#include "sim/shrink.h"

#include <algorithm>
#include <set>

#include "sim/scenario_check.h"
#include "sim/scenario_repair.h"
#include "sim/scenario_run.h"
#include "sim/shrink_knobs.h"

namespace lockstep::sim {

namespace {

// Pairs of more steps than this are too many to try.
constexpr std::size_t kMostPairedSteps = 24;

std::vector<std::string> violated(const RunResult& result) {
  std::set<std::string> names;
  for (const oracle::Violation& violation : result.violations) names.insert(violation.invariant);
  return {names.begin(), names.end()};
}

class Shrinker {
 public:
  Shrinker(Scenario scenario, std::string invariant, const ShrinkOptions& options)
      : best_(std::move(scenario)), invariant_(std::move(invariant)), options_(options) {
    if (!best_.steps.empty()) {
      const auto* last = std::get_if<RunStep>(&best_.steps.back());
      ends_quietly_ = last != nullptr && (last->idle || last->drain);
    }
  }

  void run() {
    drop_steps();
    drop_faults();
    name_moves();
    while (round()) {
    }
  }

  const Scenario& best() const { return best_; }
  std::uint64_t executions() const { return executions_; }

 private:
  bool round() {
    bool better = drop_steps();
    better = drop_faults() || better;
    better = simplify() || better;
    better = scale() || better;
    better = lower() || better;
    better = name_moves() || better;
    better = swap() || better;
    return better || drop_pairs();
  }

  bool spent() const { return executions_ >= options_.executions; }

  // Keeps the candidate if it fails in the same way.
  bool attempt(Scenario candidate) {
    drop_dangling(candidate);
    if (spent() || candidate == best_ || !ends_as_it_should(candidate)) return false;
    if (!check_references(candidate)) return false;
    ++executions_;
    if (options_.progress) options_.progress(executions_, options_.executions);
    RunOptions options;
    options.stop_at_first = true;
    options.most_events = kEndlessEvents;
    const Result<RunResult> result = run_scenario(candidate, options);
    if (!result || result->pass() || result->violations.front().invariant != invariant_) {
      return false;
    }
    best_ = std::move(candidate);
    return true;
  }

  // Who waits for ever is only wrong if the run was let go to its end.
  bool ends_as_it_should(const Scenario& candidate) const {
    if (!ends_quietly_ || (invariant_ != "L1" && invariant_ != "L2")) return true;
    return !candidate.steps.empty() && candidate.steps.back() == best_.steps.back();
  }

  // Delta debugging: halves, quarters, .. single items, from the end.
  template <class T>
  bool drop_chunks(std::vector<T> Scenario::* list) {
    bool better = false;
    for (std::size_t size = std::max<std::size_t>(1, (best_.*list).size() / 2); size > 0;
         size /= 2) {
      for (std::size_t end = (best_.*list).size(); end > 0; end -= std::min(end, size)) {
        // What depends on the dropped items went with them.
        end = std::min(end, (best_.*list).size());
        Scenario candidate = best_;
        auto& items = candidate.*list;
        const std::size_t begin = end - std::min(end, size);
        items.erase(items.begin() + static_cast<std::ptrdiff_t>(begin),
                    items.begin() + static_cast<std::ptrdiff_t>(end));
        better = attempt(std::move(candidate)) || better;
      }
    }
    return better;
  }
  bool drop_steps() { return drop_chunks(&Scenario::steps); }
  bool drop_faults() { return drop_chunks(&Scenario::faults); }

  bool drop_pairs() {
    bool better = false;
    if (best_.steps.size() > kMostPairedSteps) return false;
    for (std::size_t i = 0; i < best_.steps.size(); ++i) {
      for (std::size_t j = i + 1; j < best_.steps.size(); ++j) {
        Scenario candidate = best_;
        candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(j));
        candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(i));
        better = attempt(std::move(candidate)) || better;
      }
    }
    return better;
  }

  // Requests come before what happens to them, and time passes last: the runs between come
  // together, and all but one can be dropped. Each swap that holds brings the order nearer, so it
  // ends.
  bool swap() {
    bool better = false;
    for (std::size_t i = 1; i < best_.steps.size(); ++i) {
      for (std::size_t j = i; j > 0 && comes_late(best_.steps[j - 1], best_.steps[j]); --j) {
        Scenario candidate = best_;
        std::swap(candidate.steps[j - 1], candidate.steps[j]);
        if (!attempt(std::move(candidate)) || j >= best_.steps.size()) break;
        better = true;
      }
    }
    return better;
  }

  static bool comes_late(const Step& first, const Step& second) {
    const auto rank = [](const Step& step) {
      if (std::holds_alternative<RunStep>(step)) return 2;
      return std::holds_alternative<SubmitStep>(step) ? 0 : 1;
    };
    return rank(first) > rank(second);
  }

  // The list is read anew after each change that held: it may name other things then.
  bool simplify() {
    bool better = false;
    for (std::size_t i = 0;;) {
      const auto changes = simplifications_of(best_);
      if (i >= changes.size() || spent()) return better;
      Scenario candidate = best_;
      changes[i](candidate);
      if (attempt(std::move(candidate))) {
        better = true;
      } else {
        ++i;
      }
    }
  }

  // Everything that counts tokens by half.
  bool scale() {
    bool better = false;
    while (best_.cache.page > Tokens{1}) {
      Scenario candidate = best_;
      for (const Knob& knob : knobs_of(best_)) {
        const std::int64_t half = knob.get(best_) / 2;
        if (half >= knob.low) knob.set(candidate, half);
      }
      if (!attempt(std::move(candidate))) return better;
      better = true;
    }
    return better;
  }

  bool lower() {
    bool better = false;
    for (std::size_t i = 0;; ++i) {
      const std::vector<Knob> knobs = knobs_of(best_);
      if (i >= knobs.size() || spent()) return better;
      better = lower(i) || better;
    }
  }

  bool set_knob(std::size_t i, std::int64_t number) {
    Scenario candidate = best_;
    knobs_of(best_)[i].set(candidate, number);
    return attempt(std::move(candidate));
  }

  // To its least value, or else as far as halving the way there goes.
  bool lower(std::size_t i) {
    const Knob knob = knobs_of(best_)[i];
    const std::int64_t start = knob.get(best_);
    if (start <= knob.low) return false;
    if (set_knob(i, knob.low)) return true;
    std::int64_t number = start;
    for (std::int64_t distance = (start - knob.low) / 2; distance > 0; distance /= 2) {
      while (number - distance > knob.low && set_knob(i, number - distance)) number -= distance;
    }
    return number < start;
  }

  // Picks become what they chose in a run.
  bool name_moves() {
    const auto is_pick = [](const Step& step) { return std::holds_alternative<PickStep>(step); };
    if (std::ranges::none_of(best_.steps, is_pick)) return false;
    Scenario candidate = best_;
    candidate.steps.clear();
    RunOptions options;
    options.taken = &candidate.steps;
    options.most_events = kEndlessEvents;
    ++executions_;
    if (!run_scenario(best_, options)) return false;
    return attempt(std::move(candidate));
  }

  Scenario best_;
  std::string invariant_;
  const ShrinkOptions& options_;
  std::uint64_t executions_ = 0;
  bool ends_quietly_ = false;
};

}  // namespace

Result<Shrunk> shrink(const Scenario& scenario, const ShrinkOptions& options) {
  Scenario start = scenario;
  start.expect.reset();
  RunOptions first_only;
  first_only.stop_at_first = true;
  first_only.most_events = kEndlessEvents;
  const Result<RunResult> failure = run_scenario(start, first_only);
  if (!failure) return failure.error();
  if (failure->pass()) return Error{"expected a scenario that violates something, this one passes"};

  Shrunk shrunk;
  shrunk.invariant = failure->violations.front().invariant;
  Shrinker shrinker(std::move(start), shrunk.invariant, options);
  shrinker.run();
  shrunk.scenario = shrinker.best();
  shrunk.executions = shrinker.executions();
  RunOptions to_the_end;
  to_the_end.most_events = kEndlessEvents;
  const Result<RunResult> whole = run_scenario(shrunk.scenario, to_the_end);
  if (!whole) return whole.error();
  expect_failure(shrunk.scenario, violated(*whole));
  return shrunk;
}

void expect_failure(Scenario& scenario, const std::vector<std::string>& invariants) {
  ExpectSpec expect;
  expect.pass = false;
  expect.violations = invariants;
  scenario.expect = expect;
}

}  // namespace lockstep::sim
