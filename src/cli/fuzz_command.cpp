#include "cli/fuzz_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/scenario_files.h"
#include "cli/terminal.h"
#include "model/model.h"
#include "reports/event_log.h"
#include "reports/fuzz_report.h"
#include "sim/campaign.h"
#include "sim/exhaustive.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"
#include "sim/shrink.h"

namespace lockstep::cli {
namespace {

using Clock = std::chrono::steady_clock;
using reports::FuzzReport;
using reports::WrittenFinding;

// So many findings of one invariant are shrunken and written; the others are only named.
constexpr int kWrittenPerInvariant = 2;
constexpr std::string_view kDefaultCorpus = "fuzz-findings";

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "60s", "5m", "1h".
Result<std::chrono::seconds> parse_time(const std::string& text) {
  const std::map<char, std::uint64_t> units{{'s', 1}, {'m', 60}, {'h', 3600}};
  if (!text.empty() && units.contains(text.back())) {
    const auto number = parse_number(std::string_view(text).substr(0, text.size() - 1));
    if (number && *number > 0) {
      return std::chrono::seconds(static_cast<std::int64_t>(*number * units.at(text.back())));
    }
  }
  return Error{"--time " + text + ": expected a time such as 60s, 5m or 1h"};
}

Result<void> parse_shard(const std::string& text, sim::CampaignOptions& options) {
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto shard = parse_number(std::string_view(text).substr(0, slash));
    const auto shards = parse_number(std::string_view(text).substr(slash + 1));
    if (shard && shards && *shard < *shards) {
      options.shard = *shard;
      options.shards = *shards;
      return {};
    }
  }
  return Error{"--shard " + text + ": expected i/n with i below n, such as 0/4"};
}

Result<std::vector<std::string>> parse_models(const std::string& text, sim::Profile profile) {
  const std::vector<std::string> known = model::preset_names();
  if (text == "all") return known;
  if (text.empty()) {
    if (profile == sim::Profile::numeric) {
      return std::vector<std::string>{"inkling-pico", "inkling-nano"};
    }
    return std::vector<std::string>{"fingerprint"};
  }
  std::vector<std::string> models;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    models.push_back(text.substr(begin, end - begin));
    if (std::find(known.begin(), known.end(), models.back()) == known.end()) {
      return Error{"--model " + models.back() + ": expected \"all\" or presets of " +
                   fmt::format("{}", fmt::join(known, ", "))};
    }
    begin = end + 1;
  }
  return models;
}

Result<sim::CampaignOptions> make_options(const FuzzArguments& arguments,
                                          const sim::Backend& backend) {
  sim::CampaignOptions options;
  const auto profile = sim::find_profile(arguments.profile);
  if (!profile) {
    return Error{"--profile " + arguments.profile + ": expected one of " +
                 fmt::format("{}", fmt::join(sim::profile_names(), ", "))};
  }
  options.profile = *profile;
  Result<std::vector<std::string>> models = parse_models(arguments.model, *profile);
  if (!models) return models.error();
  options.models = std::move(models).value();
  if (!arguments.shard.empty()) {
    if (const Result<void> shard = parse_shard(arguments.shard, options); !shard) {
      return shard.error();
    }
  }
  options.first = arguments.first;
  options.seeds = arguments.seeds;
  options.jobs = arguments.jobs;
  options.describe = reports::event_line;
  if (!arguments.defect.empty()) options.defects = {arguments.defect};
  options.run = [backend](const sim::Scenario& scenario, sim::RunOptions run_options) {
    run_options.backend = backend;
    return sim::run_scenario(scenario, run_options);
  };
  return options;
}

class Findings {
 public:
  // `shrinks`: what fails on another back end may not fail on the host, where scenarios are
  // shrunken; then they are written as generated.
  Findings(std::string folder, bool shrinks, bool quiet)
      : folder_(std::move(folder)), shrinks_(shrinks), quiet_(quiet) {}

  Result<WrittenFinding> write(const sim::Finding& finding) {
    WrittenFinding written;
    written.seed = finding.seed;
    written.model = finding.scenario.model.preset;
    written.invariant = finding.invariant();
    written.detail = detail(finding);
    if (++count_[written.invariant] > kWrittenPerInvariant) return written;
    sim::Scenario scenario = finding.scenario;
    if (finding.first && shrinks_) {
      Progress progress("executions", quiet_);
      sim::ShrinkOptions options;
      options.progress = [&](std::uint64_t done, std::uint64_t total) {
        progress.update(done, total);
      };
      Result<sim::Shrunk> shrunk = sim::shrink(scenario, options);
      if (!shrunk) return shrunk.error();
      scenario = std::move(shrunk->scenario);
      written.executions = shrunk->executions;
    }
    written.steps = scenario.steps.size();
    return save(scenario, std::move(written));
  }

 private:
  static std::string detail(const sim::Finding& finding) {
    if (finding.refusal) return finding.refusal->message;
    if (finding.difference) return *finding.difference;
    return "expected " + finding.first->expected + ", found " + finding.first->actual;
  }

  Result<WrittenFinding> save(const sim::Scenario& scenario, WrittenFinding written) const {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    std::string name = written.invariant + "-" + std::to_string(written.seed) + ".json";
    std::ranges::replace(name, ':', '-');
    written.file = folder_ + "/" + name;
    if (!write_output(written.file, sim::write_scenario(scenario))) {
      return Error{"the scenario of seed " + std::to_string(written.seed) + " was not written"};
    }
    return written;
  }

  std::string folder_;
  bool shrinks_;
  bool quiet_;
  std::map<std::string, int> count_;
};

// Replays what earlier campaigns found: whatever violates something still is a finding.
Result<std::vector<WrittenFinding>> replay_corpus(const std::string& folder) {
  std::vector<WrittenFinding> failing;
  std::error_code ignored;
  if (folder.empty() || !std::filesystem::is_directory(folder, ignored) ||
      std::filesystem::is_empty(folder, ignored)) {
    return failing;
  }
  const Result<std::vector<std::string>> paths = find_scenario_files({folder});
  if (!paths) return paths.error();
  std::vector<std::string> errors;
  for (const ScenarioFile& file : read_scenarios(*paths, errors)) {
    sim::RunOptions options;
    options.stop_at_first = true;
    const Result<sim::RunResult> result = sim::run_scenario(file.scenario, options);
    if (!result) return Error{in_file(file.path, result.error().message)};
    if (result->pass()) continue;
    const oracle::Violation& first = result->violations.front();
    failing.push_back({file.scenario.seed, file.scenario.model.preset, first.invariant,
                       "expected " + first.expected + ", found " + first.actual, file.path,
                       file.scenario.steps.size(), 0});
  }
  if (!errors.empty()) return Error{errors.front()};
  return failing;
}

// Into `report`; an error if something could not be written.
Result<void> write_findings(const std::vector<sim::Finding>& findings,
                            const FuzzArguments& arguments, FuzzReport& report) {
  Findings writer(arguments.corpus.empty() ? std::string(kDefaultCorpus) : arguments.corpus,
                  arguments.backend.name == "host", arguments.quiet);
  for (const sim::Finding& finding : findings) {
    const Result<WrittenFinding> written = writer.write(finding);
    if (!written) return written.error();
    report.findings.push_back(*written);
  }
  return {};
}

Result<FuzzReport> run(const FuzzArguments& arguments, sim::CampaignOptions options) {
  FuzzReport report;
  const Clock::time_point start = Clock::now();
  if (!arguments.time.empty()) {
    const Result<std::chrono::seconds> limit = parse_time(arguments.time);
    if (!limit) return limit.error();
    options.time_is_up = [end = start + *limit] { return Clock::now() >= end; };
  }
  Result<std::vector<WrittenFinding>> known = replay_corpus(arguments.corpus);
  if (!known) return known.error();
  report.findings = std::move(known).value();
  {
    Progress progress("seeds", arguments.quiet);
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
      progress.update(done, total);
    };
    report.summary = sim::run_campaign(options);
  }
  report.wall_time = Clock::now() - start;
  const Result<void> written = write_findings(report.summary.findings, arguments, report);
  if (!written) return written.error();
  return report;
}

Result<FuzzReport> explore(const FuzzArguments& arguments) {
  FuzzReport report;
  const Clock::time_point start = Clock::now();
  sim::ExhaustiveOptions options;
  options.jobs = arguments.jobs;
  if (!arguments.defect.empty()) options.defects = {arguments.defect};
  {
    Progress progress("lengths", arguments.quiet);
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
      progress.update(done, total);
    };
    report.exhaustive = sim::run_exhaustively(options);
  }
  report.wall_time = Clock::now() - start;
  const Result<void> written = write_findings(report.exhaustive->findings, arguments, report);
  if (!written) return written.error();
  return report;
}

}  // namespace

ExitStatus fuzz_command(const FuzzArguments& arguments) {
  const ChosenBackend chosen = choose_backend(arguments.backend);
  if (chosen.refused) return *chosen.refused;
  if (arguments.exhaustive && chosen.backend.runs_kernels()) {
    return refuse(Error{"--exhaustive: runs on the host only, leave out --backend"});
  }
  const Result<sim::CampaignOptions> options = make_options(arguments, chosen.backend);
  if (!options) return refuse(options.error());
  if (!check_output_folder(arguments.json)) return ExitStatus::bad_input;
  const Result<FuzzReport> report =
      arguments.exhaustive ? explore(arguments) : run(arguments, *options);
  if (!report) return refuse(report.error());
  if (!arguments.quiet || !report->findings.empty()) {
    fmt::print("{}", reports::fuzz_text(*report));
  }
  if (arguments.coverage) fmt::print("\n{}", reports::coverage_text(*report));
  if (!arguments.json.empty() &&
      !write_output(arguments.json, to_pretty_text(reports::fuzz_json(*report)))) {
    return ExitStatus::bad_input;
  }
  return report->findings.empty() ? ExitStatus::good : ExitStatus::finding;
}

}  // namespace lockstep::cli
