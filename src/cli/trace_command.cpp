#include "cli/trace_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/terminal.h"
#include "reports/trace_report.h"
#include "sim/scenario_reader.h"
#include "sim/trace_run.h"

namespace lockstep::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kShownViolations = 10;
constexpr std::size_t kMaxModelBytes = std::size_t{1} << 20;

Result<model::ModelSpec> read_model(const std::string& model) {
  if (!model.ends_with(".json")) {
    return sim::parse_model_spec(to_text(Json(model)), "--model");
  }
  const Result<std::string> text = read_text_file(model, kMaxModelBytes);
  if (!text) return text.error();
  return sim::parse_model_spec(*text, model);
}

Result<sim::TraceOptions> make_options(const TraceArguments& arguments) {
  sim::TraceOptions options;
  Result<model::ModelSpec> spec = read_model(arguments.model);
  if (!spec) return spec.error();
  options.model = std::move(spec).value();
  std::vector<std::string> settings = arguments.cache;
  if (!arguments.page.empty()) settings.push_back("page=" + arguments.page);
  for (const std::string& setting : settings) {
    const Result<std::string> key =
        sim::set_cache_key(setting, "--cache " + setting, options.cache);
    if (!key) return key.error();
    options.given.insert(*key);
  }
  if (arguments.max_output) options.max_output = Tokens{*arguments.max_output};
  return options;
}

}  // namespace

ExitStatus trace_command(const TraceArguments& arguments) {
  const Result<sim::TraceOptions> options = make_options(arguments);
  if (!options) return refuse(options.error());
  if (!check_output_folder(arguments.json)) return ExitStatus::bad_input;
  const ChosenBackend chosen = choose_backend(arguments.backend);
  if (chosen.refused) return *chosen.refused;
  Result<std::vector<sim::TraceRequest>> read = sim::read_trace(arguments.file);
  if (!read) return refuse(read.error());
  std::vector<sim::TraceRequest> requests = std::move(read).value();
  if (arguments.limit && *arguments.limit < requests.size()) requests.resize(*arguments.limit);

  const Clock::time_point start = Clock::now();
  Result<sim::RunResult> result = [&] {
    Progress progress("requests", arguments.quiet);
    sim::RunOptions run_options;
    run_options.backend = chosen.backend;
    run_options.watch = sim::Watch::nobody;  // a trace is long
    run_options.progress = [&](std::uint64_t done, std::uint64_t total) {
      progress.update(done, total);
    };
    return sim::run_trace(*options, requests, run_options);
  }();
  const std::chrono::duration<double> wall_time = Clock::now() - start;
  if (!result) return refuse(result.error());

  reports::TraceSummary summary = reports::summarize_trace(requests, *result);
  summary.wall_time = wall_time;
  summary.cache = sim::trace_cache(*options, requests);
  if (!arguments.quiet) fmt::print("{}", reports::trace_text(summary, *result, kShownViolations));
  if (!arguments.json.empty()) {
    const Json json = reports::trace_json(arguments.file, summary, requests, *result);
    if (!write_output(arguments.json, to_pretty_text(json))) return ExitStatus::bad_input;
  }
  return result->pass() ? ExitStatus::good : ExitStatus::finding;
}

}  // namespace lockstep::cli
