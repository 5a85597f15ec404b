// Runs a scenario in a world of its own, to its end.
#pragma once

#include <functional>
#include <memory>

#include "core/events.h"
#include "core/result.h"
#include "sim/result.h"
#include "sim/scenario.h"
#include "sim/watch.h"

namespace lockstep::sim {

struct RunOptions {
  std::optional<std::uint64_t> seed;  // in place of the scenario's
  bool stop_at_first = false;         // the first violation ends the run
  Watch watch = Watch::races;
  Observer* observer = nullptr;        // sees every event too (event log, tracing)
  std::vector<Step>* taken = nullptr;  // gets the steps that were taken, picks as what they chose
  std::function<void(std::uint64_t done, std::uint64_t total)>
      progress;  // scenario steps, or requests of a trace
};

// Runs `scenario`. An error means that it could not be run at all (start-up check, unknown name):
// nothing was run, and the message says what and what was expected. Expectations are compared;
// `unexpected` says which were not met.
Result<RunResult> run_scenario(const Scenario& scenario, const RunOptions& options);

}  // namespace lockstep::sim
