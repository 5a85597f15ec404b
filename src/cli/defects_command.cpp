#include "cli/defects_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/terminal.h"
#include "reports/defects_report.h"
#include "sim/defects/registry.h"
#include "sim/kill_matrix.h"

namespace lockstep::cli {
namespace {

Result<std::vector<sim::Defect>> wanted(const std::vector<std::string>& only) {
  std::vector<sim::Defect> all = sim::all_defects();
  if (only.empty()) return all;
  std::vector<sim::Defect> some;
  for (const std::string& id : only) {
    const auto found = std::ranges::find(all, id, &sim::Defect::id);
    if (found == all.end()) {
      return Error{"--only " + id + ": unknown defect, lockstep defects lists them"};
    }
    some.push_back(*found);
  }
  return some;
}

sim::KillMatrix measure(const DefectsArguments& arguments) {
  Progress progress("defects", arguments.quiet);
  sim::KillOptions options;
  options.only = arguments.only;
  options.first = arguments.first;
  options.seeds = arguments.seeds;
  options.clean_seeds = arguments.clean;
  options.kl_seeds = arguments.kl_seeds;
  options.jobs = arguments.jobs;
  options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); };
  return sim::measure_kills(options);
}

ExitStatus show(const DefectsArguments& arguments, const std::string& text, const Json& json,
                ExitStatus status) {
  if (!arguments.quiet) fmt::print("{}", text);
  const bool is_written =
      arguments.json.empty() || write_output(arguments.json, to_pretty_text(json));
  return is_written ? status : ExitStatus::bad_input;
}

}  // namespace

ExitStatus defects_command(const DefectsArguments& arguments) {
  const Result<std::vector<sim::Defect>> defects = wanted(arguments.only);
  if (!defects) return refuse(defects.error());
  if (!check_output_folder(arguments.json)) return ExitStatus::bad_input;
  if (!arguments.run) {
    return show(arguments, reports::defect_list_text(*defects), reports::defect_list_json(*defects),
                ExitStatus::good);
  }
  const sim::KillMatrix matrix = measure(arguments);
  return show(arguments, reports::kill_matrix_text(matrix), reports::kill_matrix_json(matrix),
              matrix.good() ? ExitStatus::good : ExitStatus::finding);
}

}  // namespace lockstep::cli
