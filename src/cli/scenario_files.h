// Finding and reading the scenarios that a command line names.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"
#include "sim/scenario.h"

namespace lockstep::cli {

struct ScenarioFile {
  std::string path;
  sim::Scenario scenario;
};

// Files as they are named; of a folder every *.json below it in byte order, but for schema.json.
Result<std::vector<std::string>> find_scenario_files(const std::vector<std::string>& paths);

// Reads all files and appends one message per bad one to `errors`.
std::vector<ScenarioFile> read_scenarios(const std::vector<std::string>& paths,
                                         std::vector<std::string>& errors);

// Builds the world of each scenario without taking a step, and appends what was refused to
// `errors`.
void check_startup(const std::vector<ScenarioFile>& files, std::vector<std::string>& errors);

// `message` with the file in front, where it does not begin with it anyway.
std::string in_file(const std::string& path, const std::string& message);

}  // namespace lockstep::cli
