// lockstep doctor: what this machine offers and what is missing.
#pragma once

#include <string>

#include "cli/exit_status.h"

namespace lockstep::cli {

struct DoctorArguments {
  std::string json;
  bool quiet = false;
};

ExitStatus doctor_command(const DoctorArguments& arguments);

}  // namespace lockstep::cli
