// The options --backend and --free-running of run, fuzz and trace.
#pragma once

#include <optional>
#include <string>

#include "cli/exit_status.h"
#include "core/result.h"
#include "sim/backend.h"

namespace lockstep::cli {

struct BackendArguments {
  std::string name = "host";
  bool free_running = false;
};

// What they mean; or the refusal has been printed, and this is the status to end with.
struct ChosenBackend {
  sim::Backend backend;
  std::optional<ExitStatus> refused;
};
ChosenBackend choose_backend(const BackendArguments& arguments);

}  // namespace lockstep::cli
