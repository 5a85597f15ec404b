// One scenario of a `run`, as the reports show it.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "sim/result.h"

namespace lockstep::reports {

struct RunEntry {
  std::string name;
  std::string file;
  std::uint64_t seed = 0;
  std::optional<Error> refusal;  // it could not be run at all; `result` is then empty
  sim::RunResult result;
  bool as_expected = false;  // what decides the exit status
  std::chrono::duration<double> wall_time{0};

  // "pass", "fail", "refused".
  std::string verdict() const {
    if (refusal) return "refused";
    return result.pass() ? "pass" : "fail";
  }
};

inline bool all_as_expected(std::span<const RunEntry> entries) {
  for (const RunEntry& entry : entries) {
    if (!entry.as_expected) return false;
  }
  return true;
}

}  // namespace lockstep::reports
