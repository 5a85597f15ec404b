// lockstep defects: the planted defects, and which checks find them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/exit_status.h"

namespace lockstep::cli {

struct DefectsArguments {
  bool run = false;
  std::vector<std::string> only;
  std::uint64_t first = 1;
  std::uint64_t seeds = 2000;
  std::uint64_t clean = 2000;
  std::uint64_t kl_seeds = 40;
  std::size_t jobs = 1;
  std::string json;
  bool quiet = false;
};

ExitStatus defects_command(const DefectsArguments& arguments);

}  // namespace lockstep::cli
