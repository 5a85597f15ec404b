// lockstep fuzz: generates, runs and shrinks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/backend_option.h"
#include "cli/exit_status.h"

namespace lockstep::cli {

struct FuzzArguments {
  std::uint64_t seeds = 1000;
  std::uint64_t first = 1;
  std::string time;  // "60s", "5m"; empty: no limit
  std::size_t jobs = 1;
  std::string model;  // presets with commas, "all"; empty: as the profile has it
  std::string profile = "smoke";
  std::string shard;  // "0/4"
  std::string corpus;
  std::string json;
  std::string defect;
  bool coverage = false;
  bool exhaustive = false;
  BackendArguments backend;
  bool quiet = false;
};

ExitStatus fuzz_command(const FuzzArguments& arguments);

}  // namespace lockstep::cli
