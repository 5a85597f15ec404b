#include "cli/shrink_command.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/scenario_files.h"
#include "cli/terminal.h"
#include "reports/catch_test.h"
#include "sim/scenario_reader.h"
#include "sim/shrink.h"

namespace lockstep::cli {

ExitStatus shrink_command(const ShrinkArguments& arguments) {
  const Result<sim::Scenario> scenario = sim::read_scenario_file(arguments.file);
  if (!scenario) return refuse(scenario.error());
  if (!check_output_folder(arguments.output) || !check_output_folder(arguments.catch_test)) {
    return ExitStatus::bad_input;
  }
  const Result<sim::Shrunk> shrunk = [&] {
    Progress progress("executions", arguments.quiet);
    sim::ShrinkOptions options;
    options.executions = arguments.executions;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
      progress.update(done, total);
    };
    return sim::shrink(*scenario, options);
  }();
  if (!shrunk) return refuse(Error{in_file(arguments.file, shrunk.error().message)});
  if (!write_output(arguments.output, sim::write_scenario(shrunk->scenario))) {
    return ExitStatus::bad_input;
  }
  if (!arguments.catch_test.empty() &&
      !write_output(arguments.catch_test, reports::catch_test(shrunk->scenario))) {
    return ExitStatus::bad_input;
  }
  if (!arguments.quiet) {
    fmt::print("{}: {} of {} steps left after {} executions: lockstep run '{}'\n",
               shrunk->invariant, shrunk->scenario.steps.size(), scenario->steps.size(),
               shrunk->executions, arguments.output);
  }
  return ExitStatus::good;
}

}  // namespace lockstep::cli
