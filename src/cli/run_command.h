// lockstep run: replays scenarios.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/backend_option.h"
#include "cli/exit_status.h"

namespace lockstep::cli {

struct RunArguments {
  std::vector<std::string> paths;  // scenario files, and folders of them
  std::optional<std::uint64_t> seed;
  std::string json;
  std::string junit;
  std::string events;
  bool check_determinism = false;
  bool no_expect = false;
  bool fast = false;  // without the scenarios that call themselves slow
  bool print = false;
  BackendArguments backend;
  bool quiet = false;
  bool verbose = false;
};

ExitStatus run_command(const RunArguments& arguments);

}  // namespace lockstep::cli
