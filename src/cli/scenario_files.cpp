#include "cli/scenario_files.h"

#include <algorithm>
#include <filesystem>

#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

namespace lockstep::cli {
namespace {

Result<std::vector<std::string>> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::recursive_directory_iterator();
       entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    if (path.extension() != ".json" || path.filename() == "schema.json") continue;
    if (entries->is_regular_file()) files.push_back(path.string());
  }
  if (error) return Error{folder + ": cannot be read: " + error.message()};
  if (files.empty()) {
    return Error{folder + ": expected scenarios (*.json) in this folder, found none"};
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<std::vector<std::string>> find_scenario_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    const Result<std::vector<std::string>> found = files_below(path);
    if (!found) return found.error();
    files.insert(files.end(), found->begin(), found->end());
  }
  return files;
}

std::vector<ScenarioFile> read_scenarios(const std::vector<std::string>& paths,
                                         std::vector<std::string>& errors) {
  std::vector<ScenarioFile> files;
  for (const std::string& path : paths) {
    Result<sim::Scenario> scenario = sim::read_scenario_file(path);
    if (scenario) {
      files.push_back({path, std::move(scenario).value()});
    } else {
      errors.push_back(scenario.error().message);
    }
  }
  return files;
}

void check_startup(const std::vector<ScenarioFile>& files, std::vector<std::string>& errors) {
  for (const ScenarioFile& file : files) {
    sim::Scenario nothing_happens = file.scenario;
    nothing_happens.steps.clear();
    nothing_happens.expect.reset();
    const Result<sim::RunResult> result = sim::run_scenario(nothing_happens, {});
    if (!result) errors.push_back(in_file(file.path, result.error().message));
  }
}

std::string in_file(const std::string& path, const std::string& message) {
  return message.starts_with(path) ? message : path + ": " + message;
}

}  // namespace lockstep::cli
