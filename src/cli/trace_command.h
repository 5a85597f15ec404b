// lockstep trace: replays a request trace, verified like any run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/backend_option.h"
#include "cli/exit_status.h"

namespace lockstep::cli {

struct TraceArguments {
  std::string file;  // "-": standard input
  std::optional<std::uint64_t> limit;
  std::string model = "fingerprint";  // a preset, or a JSON file with a model object
  std::string page;
  std::vector<std::string> cache;  // "key=value"
  std::optional<std::int64_t> max_output;
  std::string json;
  BackendArguments backend;
  bool quiet = false;
};

ExitStatus trace_command(const TraceArguments& arguments);

}  // namespace lockstep::cli
