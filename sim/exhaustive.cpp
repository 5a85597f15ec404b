#include "sim/exhaustive.h"

#include <algorithm>
#include <array>
#include <set>

#include "sim/parallel.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {

namespace {

// The sizes are the smallest in which everything can happen: a window of two pages, states at every
// page, and a second request that lacks pages while the first one runs.
Scenario small_scope() {
  Scenario scenario;
  scenario.model.window = Tokens{4};
  scenario.model.layers = {"swa", "full", "rec"};
  scenario.cache.page = Tokens{2};
  scenario.cache.track_interval = Tokens{2};
  scenario.cache.full_pages = Rows{6};
  scenario.cache.swa_pages = Rows{5};
  scenario.cache.mamba_slots = Rows{4};
  scenario.cache.max_running = 2;
  scenario.schedule.jitter = 0;
  PromptSpec a;
  a.random = RandomTokens{Tokens{6}, 1};
  PromptSpec b;
  b.from = "A";
  b.take = Tokens{4};
  b.then = {{Tokens{2}, 2}};
  scenario.prompts = {{"A", a}, {"B", b}};
  return scenario;
}

SubmitStep submit_step(const std::string& request, const std::string& prompt) {
  SubmitStep step;
  step.request = request;
  step.prompt = prompt;
  step.decode = Tokens{2};
  return step;
}

RunStep run_step(bool idle, bool drain) {
  RunStep run;
  run.idle = idle;
  run.drain = drain;
  if (!idle && !drain) run.steps = 1;
  return run;
}

EvictStep evict_step(Component component) {
  EvictStep step;
  step.component = component;
  step.count = 1;
  return step;
}

// What may come after a sequence with so many requests.
std::vector<Step> alphabet(std::size_t requests) {
  if (requests == 0) return {submit_step("r1", "A")};
  RestartStep engine;
  engine.engine = true;
  std::vector<Step> steps{run_step(false, false),
                          run_step(true, false),
                          FlushStep{},
                          CancelStep{"r1"},
                          RetractStep{"r1"},
                          evict_step(Component::full),
                          evict_step(Component::swa),
                          evict_step(Component::mamba),
                          HoldStep{"r1", Point::looked_up},
                          engine};
  if (requests == 1) {
    steps.emplace_back(submit_step("r2", "A"));
    steps.emplace_back(submit_step("r2", "B"));
  }
  return steps;
}

std::size_t requests_of(const std::vector<Step>& steps) {
  return static_cast<std::size_t>(std::ranges::count_if(
      steps, [](const Step& step) { return std::holds_alternative<SubmitStep>(step); }));
}

// What a state is known by: the events that led to it, and what was asked for since.
struct State {
  std::uint64_t digest = 0;
  std::vector<std::size_t> asked;  // places in the alphabet
  auto operator<=>(const State&) const = default;
};

struct Sequence {
  std::vector<Step> steps;
  State state;
};

std::vector<FaultSpec> faults_of_scope() {
  const auto fault = [](FaultPhase on, const std::string& kind, std::int64_t number) {
    FaultSpec spec;
    spec.on = on;
    spec.action.kind = kind;
    spec.action.number = number;
    return spec;
  };
  std::vector<FaultSpec> faults{
      fault(FaultPhase::load, "fail", 0), fault(FaultPhase::load, "delay_us", 500),
      fault(FaultPhase::offload, "fail", 0), fault(FaultPhase::offload, "delay_us", 500),
      fault(FaultPhase::lookup, "stale", 0)};
  for (Component component : kComponents) {
    faults.push_back(fault(FaultPhase::alloc, "refuse", 0));
    faults.back().component = component;
  }
  return faults;
}

class Explorer {
 public:
  explicit Explorer(const ExhaustiveOptions& options) : options_(options), scope_(small_scope()) {
    scope_.defects = options.defects;
  }

  ExhaustiveSummary run() {
    std::vector<Sequence> frontier{Sequence{}};
    for (std::size_t length = 1; length <= options_.steps && !full(); ++length) {
      frontier = extend(frontier);
      verify(frontier);
      if (length <= options_.steps_with_fault) disturb(frontier);
      if (options_.progress) options_.progress(length, options_.steps);
    }
    return std::move(summary_);
  }

 private:
  bool full() const { return summary_.findings.size() >= options_.most_findings; }

  Scenario scenario(const std::vector<Step>& steps) const {
    Scenario result = scope_;
    result.name = "exhaustive-" + std::to_string(summary_.sequences);
    result.steps = steps;
    return result;
  }

  // With a drain, a flush and a request that restores.
  Scenario complete(const std::vector<Step>& steps) const {
    Scenario result = scenario(steps);
    result.steps.emplace_back(run_step(false, true));
    result.steps.emplace_back(FlushStep{});
    result.steps.emplace_back(submit_step("probe", "A"));
    result.steps.emplace_back(run_step(false, true));
    return result;
  }

  // All sequences one step longer that lead to a new state.
  std::vector<Sequence> extend(const std::vector<Sequence>& frontier) {
    std::vector<Sequence> candidates;
    for (const Sequence& sequence : frontier) {
      const std::vector<Step> steps = alphabet(requests_of(sequence.steps));
      for (std::size_t i = 0; i < steps.size(); ++i) {
        candidates.push_back(sequence);
        candidates.back().steps.push_back(steps[i]);
        if (std::holds_alternative<RunStep>(steps[i])) {
          candidates.back().state.asked.clear();
        } else if (!std::holds_alternative<SubmitStep>(steps[i])) {
          candidates.back().state.asked.push_back(i);
        }
      }
    }
    for_each_parallel(candidates.size(), options_.jobs, [&](std::size_t i) {
      const Result<RunResult> result = run_scenario(scenario(candidates[i].steps), {});
      if (result) candidates[i].state.digest = result->digest;
    });
    summary_.merged += std::erase_if(
        candidates, [&](const Sequence& sequence) { return !seen_.insert(sequence.state).second; });
    return candidates;
  }

  void verify(const std::vector<Sequence>& sequences) {
    std::vector<Scenario> scenarios;
    for (const Sequence& sequence : sequences) {
      ++summary_.sequences;
      scenarios.push_back(complete(sequence.steps));
    }
    run_all(scenarios);
    for (std::size_t i = 0; i < scenarios.size(); ++i) judge(scenarios[i], results_[i]);
  }

  // Each fault at its first, second, .. occurrence, until it does not fire any more.
  void disturb(const std::vector<Sequence>& sequences) {
    for (FaultSpec fault : faults_of_scope()) {
      std::vector<Scenario> scenarios;
      for (const Sequence& sequence : sequences) scenarios.push_back(complete(sequence.steps));
      for (fault.nth = 1; !scenarios.empty() && !full(); ++*fault.nth) {
        for (Scenario& scenario : scenarios) scenario.faults = {fault};
        run_all(scenarios);
        std::vector<Scenario> fired;
        for (std::size_t i = 0; i < scenarios.size(); ++i) {
          judge(scenarios[i], results_[i]);
          if (!results_[i] || results_[i]->faults_injected.empty()) continue;
          ++summary_.with_fault;
          fired.push_back(std::move(scenarios[i]));
        }
        scenarios = std::move(fired);
      }
    }
  }

  void run_all(const std::vector<Scenario>& scenarios) {
    results_.assign(scenarios.size(), Error{});
    RunOptions options;
    options.stop_at_first = true;
    options.most_events = kEndlessEvents;
    for_each_parallel(scenarios.size(), options_.jobs,
                      [&](std::size_t i) { results_[i] = run_scenario(scenarios[i], options); });
  }

  void judge(const Scenario& scenario, const Result<RunResult>& result) {
    if (full()) return;
    if (!result) {
      summary_.findings.push_back({summary_.sequences, scenario, {}, result.error(), {}});
      return;
    }
    summary_.events += result->events;
    for (const auto& [point, times] : result->sometimes) summary_.sometimes[point] += times;
    summary_.commits_verified += result->counters.at("commits_verified");
    if (!result->pass()) {
      summary_.findings.push_back(
          {summary_.sequences, scenario, result->violations.front(), {}, {}});
    }
  }

  const ExhaustiveOptions& options_;
  Scenario scope_;
  ExhaustiveSummary summary_;
  std::set<State> seen_;
  std::vector<Result<RunResult>> results_;  // of the last run_all()
};

}  // namespace

ExhaustiveSummary run_exhaustively(const ExhaustiveOptions& options) {
  return Explorer(options).run();
}

}  // namespace lockstep::sim
