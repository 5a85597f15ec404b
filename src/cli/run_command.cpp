#include "cli/run_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "cli/scenario_files.h"
#include "cli/terminal.h"
#include "reports/console.h"
#include "reports/event_log.h"
#include "reports/junit.h"
#include "reports/result_json.h"
#include "sim/determinism.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::cli {
namespace {

using reports::RunEntry;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kVerboseViolations = 100;

// Passes events on to all who want them.
class Observers : public Observer {
 public:
  void add(Observer* observer) { observers_.push_back(observer); }
  void on_event(const Event& event) override {
    for (Observer* observer : observers_) observer->on_event(event);
  }
  Observer* or_null() { return observers_.empty() ? nullptr : this; }

 private:
  std::vector<Observer*> observers_;
};

class Runner {
 public:
  Runner(const RunArguments& arguments, const sim::Backend& backend, std::ostream* events)
      : arguments_(arguments),
        backend_(backend),
        events_(events),
        progress_("scenarios", arguments.quiet) {}

  std::vector<RunEntry> run_all(const std::vector<ScenarioFile>& files) {
    std::vector<RunEntry> entries;
    for (const ScenarioFile& file : files) {
      progress_.update(entries.size(), files.size());
      entries.push_back(run_one(file));
    }
    return entries;
  }

 private:
  RunEntry run_one(const ScenarioFile& file) {
    RunEntry entry;
    entry.name = file.scenario.name;
    entry.file = file.path;
    entry.seed = arguments_.seed.value_or(file.scenario.seed);
    const Clock::time_point start = Clock::now();
    run_into(file, entry);
    entry.wall_time = Clock::now() - start;
    return entry;
  }

  void run_into(const ScenarioFile& file, RunEntry& entry) {
    sim::EventRecorder recorder;
    Observers observers;
    std::optional<reports::EventLog> log;
    if (events_) {
      const Json head =
          Json::Object{{"scenario", entry.name}, {"file", entry.file}, {"seed", entry.seed}};
      *events_ << to_text(head) << '\n';
      observers.add(&log.emplace(*events_));
    }
    if (arguments_.check_determinism) observers.add(&recorder);
    Result<sim::RunResult> result = run(file.scenario, observers.or_null());
    if (!result) {
      entry.refusal = Error{in_file(file.path, result.error().message)};
      return;
    }
    entry.result = std::move(result).value();
    if (arguments_.no_expect) entry.result.unexpected.clear();
    entry.as_expected =
        arguments_.no_expect ? entry.result.pass() : entry.result.unexpected.empty();
    if (arguments_.check_determinism) compare_with_second_run(file.scenario, recorder, entry);
  }

  void compare_with_second_run(const sim::Scenario& scenario, const sim::EventRecorder& first,
                               RunEntry& entry) {
    const std::optional<std::string> difference = sim::find_difference(
        entry.result, first, [&](Observer* observer) { return run(scenario, observer); },
        reports::event_line);
    if (!difference) return;
    entry.result.unexpected.push_back(*difference);
    entry.as_expected = false;
  }

  Result<sim::RunResult> run(const sim::Scenario& scenario, Observer* observer) const {
    sim::RunOptions options;
    options.seed = arguments_.seed;
    options.backend = backend_;
    options.observer = observer;
    return sim::run_scenario(scenario, options);
  }

  const RunArguments& arguments_;
  sim::Backend backend_;
  std::ostream* events_;
  Progress progress_;
};

void print_scenarios(const std::vector<ScenarioFile>& files) {
  for (const ScenarioFile& file : files) fmt::print("{}", sim::write_scenario(file.scenario));
}

void show(const std::vector<RunEntry>& entries, const RunArguments& arguments) {
  if (arguments.quiet && reports::all_as_expected(entries)) return;
  reports::ConsoleStyle style;
  style.colours = wants_colours();
  style.show_expected = arguments.verbose;
  if (arguments.verbose) style.violations = kVerboseViolations;
  fmt::print("{}", reports::run_table(entries, style));
}

ExitStatus report(const std::vector<RunEntry>& entries, const RunArguments& arguments) {
  show(entries, arguments);
  bool written = true;
  if (!arguments.json.empty()) {
    written &= write_output(arguments.json, to_pretty_text(reports::run_json(entries)));
  }
  if (!arguments.junit.empty())
    written &= write_output(arguments.junit, reports::junit_xml(entries));
  bool refused = !written;
  for (const RunEntry& entry : entries) {
    if (!entry.refusal) continue;
    fmt::print(stderr, "{}\n", entry.refusal->message);
    refused = true;
  }
  if (refused) return ExitStatus::bad_input;
  return reports::all_as_expected(entries) ? ExitStatus::good : ExitStatus::finding;
}

}  // namespace

ExitStatus run_command(const RunArguments& arguments) {
  const Result<std::vector<std::string>> paths = find_scenario_files(arguments.paths);
  if (!paths) return refuse(paths.error());
  std::vector<std::string> errors;
  std::vector<ScenarioFile> files = read_scenarios(*paths, errors);
  if (!errors.empty()) return refuse(errors);
  if (arguments.fast) std::erase_if(files, [](const auto& file) { return file.scenario.slow; });
  if (files.empty())
    return refuse(Error{"--fast: expected a scenario that is not slow, found none"});
  if (arguments.print) {
    print_scenarios(files);
    return ExitStatus::good;
  }
  const ChosenBackend chosen = choose_backend(arguments.backend);
  if (chosen.refused) return *chosen.refused;
  check_startup(files, errors);
  if (!errors.empty()) return refuse(errors);
  for (const std::string* output : {&arguments.json, &arguments.junit, &arguments.events}) {
    if (!check_output_folder(*output)) return ExitStatus::bad_input;
  }
  std::ofstream events;
  if (!arguments.events.empty()) {
    events.open(arguments.events, std::ios::binary);
    if (!events) return refuse(Error{arguments.events + ": cannot be written"});
  }
  const std::vector<RunEntry> entries =
      Runner(arguments, chosen.backend, events.is_open() ? &events : nullptr).run_all(files);
  return report(entries, arguments);
}

}  // namespace lockstep::cli
