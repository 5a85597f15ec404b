// From a failing scenario to a small one that fails in the same way (simulation.md, Shrinking).
//
// Steps, requests and faults are dropped, settings become the defaults, prompts are shortened and
// merged, numbers lowered, steps swapped, as long as the first violation names the same invariant.
// Picks let steps be dropped freely; then they are replaced by what they chose, and the passes go
// on. Deterministic: it depends on the scenario alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/result.h"
#include "sim/scenario.h"

namespace lockstep::sim {

struct ShrinkOptions {
  std::uint64_t executions = 2000;  // at most
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

struct Shrunk {
  Scenario scenario;      // with the expectation of what it does
  std::string invariant;  // of its first violation
  std::uint64_t executions = 0;
};

// An error if the scenario cannot be run, or violates nothing.
Result<Shrunk> shrink(const Scenario& scenario, const ShrinkOptions& options);

// Writes into the scenario that it fails as `result` did: the exact set of violated invariants.
void expect_failure(Scenario& scenario, const std::vector<std::string>& invariants);

}  // namespace lockstep::sim
