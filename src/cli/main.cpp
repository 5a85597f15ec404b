// The command line: options of each verb, and nothing else. The only file that includes CLI11.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "cli/defects_command.h"
#include "cli/doctor_command.h"
#include "cli/fuzz_command.h"
#include "cli/run_command.h"
#include "cli/shrink_command.h"
#include "cli/trace_command.h"

namespace lockstep::cli {
namespace {

constexpr std::uint64_t kMaxSeed = (std::uint64_t{1} << 53) - 1;
constexpr std::size_t kMaxJobs = 1024;
constexpr std::int64_t kMaxOutput = std::int64_t{1} << 24;

using Command = std::function<ExitStatus()>;

void add_backend(CLI::App& verb, BackendArguments& backend) {
  verb.add_option("--backend", backend.name,
                  "host; cuda; emulated: the kernels of cuda on the host, in guarded memory")
      ->capture_default_str();
  verb.add_flag("--free-running", backend.free_running,
                "streams at their own speed, ordered by events only, instead of the simulator's "
                "schedule");
}

void add_run(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* run = app.add_subcommand("run", "replay scenarios and verify every commit");
  run->footer("Example:\n  lockstep run scenarios --junit junit.xml");
  run->add_option("paths", arguments->paths, "scenario files, or folders of them")->required();
  run->add_option("--seed", arguments->seed, "in place of each scenario's seed")
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed));
  run->add_option("--json", arguments->json, "write the results as JSON");
  run->add_option("--junit", arguments->junit, "write the results as JUnit XML");
  run->add_option("--events", arguments->events, "write every event as a line of JSON");
  run->add_flag("--check-determinism", arguments->check_determinism,
                "run everything twice and compare event by event");
  run->add_flag("--no-expect", arguments->no_expect,
                "do not compare with what scenarios expect: pass or fail");
  run->add_flag("--fast", arguments->fast, "leave out the scenarios that call themselves slow");
  run->add_flag("--print", arguments->print, "print the scenarios with all defaults, run nothing");
  add_backend(*run, arguments->backend);
  run->add_flag("-q,--quiet", arguments->quiet, "say nothing if all is as expected");
  run->add_flag("-v,--verbose", arguments->verbose, "show all violations, expected ones too");
  run->callback(
      [arguments, &command] { command = [arguments] { return run_command(*arguments); }; });
}

void add_fuzz(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<FuzzArguments>();
  CLI::App* fuzz = app.add_subcommand("fuzz", "generate scenarios from seeds, run and shrink them");
  fuzz->footer(
      "A failure is written to the corpus folder (fuzz-findings without --corpus), shrunken.\n"
      "Example:\n  lockstep fuzz --seeds 20000 --jobs 4 --coverage");
  fuzz->add_option("--seeds", arguments->seeds, "how many")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, kMaxSeed));
  fuzz->add_option("--first", arguments->first, "the first seed")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed / 2));
  fuzz->add_option("--time", arguments->time, "stop after this time: 60s, 5m, 1h");
  fuzz->add_option("--jobs", arguments->jobs, "threads; the result does not depend on them")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, kMaxJobs));
  fuzz->add_option("--model", arguments->model, "presets, with commas, or \"all\"");
  fuzz->add_option("--profile", arguments->profile,
                   "smoke, nightly, ranks, pressure, races, numeric")
      ->capture_default_str();
  fuzz->add_option("--shard", arguments->shard, "only part i of n of the seeds: i/n, i from 0");
  fuzz->add_option("--corpus", arguments->corpus,
                   "folder of earlier findings, replayed first; new ones are added");
  fuzz->add_option("--json", arguments->json, "write the result as JSON");
  fuzz->add_option("--defect", arguments->defect, "plant this defect in every run");
  fuzz->add_flag("--exhaustive", arguments->exhaustive,
                 "run all short sequences of a small scope instead of seeds");
  fuzz->add_flag("--coverage", arguments->coverage,
                 "show which states were reached, and which features ran together");
  add_backend(*fuzz, arguments->backend);
  fuzz->add_flag("-q,--quiet", arguments->quiet, "say nothing but findings");
  fuzz->callback(
      [arguments, &command] { command = [arguments] { return fuzz_command(*arguments); }; });
}

void add_shrink(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<ShrinkArguments>();
  CLI::App* shrink = app.add_subcommand("shrink", "reduce a failing scenario");
  shrink->footer("Example:\n  lockstep shrink failing.json -o small.json");
  shrink->add_option("file", arguments->file, "the scenario")->required();
  shrink->add_option("-o,--output", arguments->output, "where the small one goes")->required();
  shrink->add_option("--catch2", arguments->catch_test,
                     "write it as the source of a Catch2 test, too");
  shrink->add_option("--executions", arguments->executions, "runs at most")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, kMaxSeed));
  shrink->add_flag("-q,--quiet", arguments->quiet, "print nothing");
  shrink->callback(
      [arguments, &command] { command = [arguments] { return shrink_command(*arguments); }; });
}

void add_defects(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<DefectsArguments>();
  CLI::App* defects =
      app.add_subcommand("defects", "list the planted defects; measure which checks find them");
  defects->footer("Example:\n  lockstep defects --run --jobs 2");
  defects->add_flag("--run", arguments->run, "plant each in turn, in generated scenarios");
  defects->add_option("--only", arguments->only, "only these ids, with commas")->delimiter(',');
  defects->add_option("--first", arguments->first, "the first seed")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed / 2));
  defects->add_option("--seeds", arguments->seeds, "for each defect, at most")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, kMaxSeed));
  defects->add_option("--clean", arguments->clean, "seeds without a defect, which must all pass")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed));
  defects->add_option("--kl-seeds", arguments->kl_seeds, "for each defect, with a numeric model")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, kMaxSeed));
  defects->add_option("--jobs", arguments->jobs, "threads; the result does not depend on them")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, kMaxJobs));
  defects->add_option("--json", arguments->json, "write the result as JSON");
  defects->add_flag("-q,--quiet", arguments->quiet, "print nothing");
  defects->callback(
      [arguments, &command] { command = [arguments] { return defects_command(*arguments); }; });
}

void add_trace(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<TraceArguments>();
  CLI::App* trace = app.add_subcommand("trace", "replay a request trace, verified like any run");
  trace->footer(
      "Reads Mooncake JSON lines and agent sessions: .jsonl, .json, .xz, .tar.xz, or - for "
      "standard input.\n"
      "Example:\n  lockstep trace scenarios/traces/mooncake_conversation.jsonl.xz --limit 2000");
  trace->add_option("file", arguments->file, "the trace")->required();
  trace->add_option("--limit", arguments->limit, "only the first requests")
      ->check(CLI::Range(std::uint64_t{1}, kMaxSeed));
  trace->add_option("--model", arguments->model, "a preset, or a JSON file with a model object")
      ->capture_default_str();
  trace->add_option("--page", arguments->page, "tokens per page (default: the trace's block)");
  trace->add_option("--cache", arguments->cache, "key=value of a scenario's cache; may be repeated")
      ->allow_extra_args(false);
  trace->add_option("--max-output", arguments->max_output, "cut what each request generates")
      ->check(CLI::Range(std::int64_t{1}, kMaxOutput));
  trace->add_option("--json", arguments->json, "write the result as JSON");
  add_backend(*trace, arguments->backend);
  trace->add_flag("-q,--quiet", arguments->quiet, "print nothing");
  trace->callback(
      [arguments, &command] { command = [arguments] { return trace_command(*arguments); }; });
}

void add_doctor(CLI::App& app, Command& command) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* doctor = app.add_subcommand("doctor", "what this machine offers and what is missing");
  doctor->footer("Example:\n  lockstep doctor");
  doctor->add_option("--json", arguments->json, "write the findings as JSON");
  doctor->add_flag("-q,--quiet", arguments->quiet, "print nothing");
  doctor->callback(
      [arguments, &command] { command = [arguments] { return doctor_command(*arguments); }; });
}

int main_with(int argc, char** argv) {
  CLI::App app("Lockstep: a deterministic harness for restoring cached model state");
  app.name("lockstep");
  app.set_version_flag("--version", "lockstep 0.1");
  app.require_subcommand(1);
  Command command;
  add_run(app, command);
  add_fuzz(app, command);
  add_shrink(app, command);
  add_defects(app, command);
  add_trace(app, command);
  add_doctor(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = app.exit(error) == 0;
    return static_cast<int>(asked_for_help ? ExitStatus::good : ExitStatus::bad_input);
  }
  return static_cast<int>(command());
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  return lockstep::cli::main_with(argc, argv);
}
