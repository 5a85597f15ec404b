// lockstep shrink: reduces a failing scenario.
#pragma once

#include <cstdint>
#include <string>

#include "cli/exit_status.h"

namespace lockstep::cli {

struct ShrinkArguments {
  std::string file;
  std::string output;
  std::string catch_test;  // written there, if not empty
  std::uint64_t executions = 2000;
  bool quiet = false;
};

ExitStatus shrink_command(const ShrinkArguments& arguments);

}  // namespace lockstep::cli
