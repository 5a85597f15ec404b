// What `lockstep fuzz` reports of a campaign.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "sim/campaign.h"
#include "sim/exhaustive.h"

namespace lockstep::reports {

// A finding, and where it was written to.
struct WrittenFinding {
  std::uint64_t seed = 0;
  std::string model;
  std::string invariant;
  std::string detail;            // "expected .., found .."
  std::string file;              // empty: not written, since others of the same invariant were
  std::size_t steps = 0;         // of the file
  std::uint64_t executions = 0;  // that shrinking took
};

struct FuzzReport {
  sim::CampaignSummary summary;
  std::optional<sim::ExhaustiveSummary> exhaustive;  // in place of seeds
  std::vector<WrittenFinding> findings;
  std::chrono::duration<double> wall_time{0};
};

// Lines for a person: findings with the command that replays each, then figures.
std::string fuzz_text(const FuzzReport& report);
// Sometimes-points with their counts, those that were not reached, and, of seeds, features.
std::string coverage_text(const FuzzReport& report);
// All but the wall time, so that it does not depend on the machine.
Json fuzz_json(const FuzzReport& report);

}  // namespace lockstep::reports
