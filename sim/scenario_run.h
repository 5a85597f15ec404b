// Runs a scenario in a world of its own, to its end.
#pragma once

#include <functional>
#include <memory>

#include "core/events.h"
#include "core/result.h"
#include "sim/backend.h"
#include "sim/result.h"
#include "sim/scenario.h"
#include "sim/watch.h"

namespace lockstep::sim {

// A generated scenario that has made so many events is going round in circles: the longest ones
// make some ten thousands.
inline constexpr std::uint64_t kEndlessEvents = 1'000'000;

struct RunOptions {
  std::optional<std::uint64_t> seed;  // in place of the scenario's
  bool stop_at_first = false;         // the first violation ends the run
  std::uint64_t most_events = 0;      // after which the run counts as endless (L1); 0: no bound
  Backend backend;
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
