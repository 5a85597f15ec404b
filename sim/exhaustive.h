// All short sequences of steps in a small scope: 2 prompts that share a page, 3 pages each, 2
// requests, tight pools (simulation.md). Up to 6 steps without a fault, up to 4 with one.
//
// Each sequence is followed by a drain, a flush and a third request that restores what is left.
//
// Merged, and so run once: the two prompts (one is the other with a last page of its own, so the
// first request has prompt A); sequences that have led to the same events and have asked for the
// same since the last run, which are in the same state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/campaign.h"
#include "sim/scenario.h"

namespace lockstep::sim {

struct ExhaustiveOptions {
  std::size_t steps = 6;
  std::size_t steps_with_fault = 4;
  std::size_t jobs = 1;
  std::vector<std::string> defects;
  std::uint64_t most_findings = 10;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

struct ExhaustiveSummary {
  std::uint64_t sequences = 0;   // that differ
  std::uint64_t merged = 0;      // that led to a state of another one
  std::uint64_t with_fault = 0;  // runs in which the fault fired
  std::uint64_t events = 0;
  std::int64_t commits_verified = 0;
  std::map<std::string, std::int64_t> sometimes;
  std::vector<Finding> findings;  // their seed is the number of the sequence
};

ExhaustiveSummary run_exhaustively(const ExhaustiveOptions& options);

}  // namespace lockstep::sim
