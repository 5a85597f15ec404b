// Plants each known defect in turn and says which invariants report it, after how many seeds, and
// what each family of checks is worth.
//
// The judges only watch: a run is the same whichever of them is switched off. So the invariants
// that a run violated are noted once, and "without a detector" means without those that it owns.
//
// Seed s runs a scenario of profile s mod n (kKillProfiles), the same one with and without a
// defect. A defect's seeds are tried in order until its required invariant has been reported and a
// few more runs have shown what else sees it.
//
// A planted run may go round in circles: with and without a numeric model it ends after
// `most_events`, which the watchdog reports as L1.
//
// Not measured: violations beyond the 100 that a verdict keeps; what a detector would cost.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/defects/defect.h"
#include "sim/scenario.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {

struct KillOptions {
  std::vector<std::string> only;  // ids; empty: all
  std::uint64_t first = 1;
  std::uint64_t seeds = 2000;        // at most, for each defect
  std::uint64_t detections = 20;     // runs that report a defect, after which no more are wanted
  std::uint64_t clean_seeds = 2000;  // without a defect
  std::uint64_t kl_seeds = 40;       // for each defect, with a numeric model
  std::uint64_t most_events = kEndlessEvents;  // of one run
  std::size_t jobs = 1;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // defects; from any job
};

struct DefectOutcome {
  Defect defect;
  std::uint64_t seeds_run = 0;
  std::uint64_t detections = 0;                 // seeds with a violation
  std::optional<std::uint64_t> seeds_needed;    // until the first of them
  std::optional<std::uint64_t> required_after;  // seeds until the required invariant was violated
  std::string by;                               // the first violation of the first detection
  std::map<std::string, std::uint64_t> seen;    // invariant -> seeds
  bool kl_sees = false;  // a mean KL of at least 1e-9 in some run of the numeric model

  bool required_fired() const { return required_after.has_value(); }
  // Whether an invariant that `detector` does not own was violated.
  bool seen_without(std::string_view detector) const;
};

// A clean seed with a violation: a false alarm, or a fault of the linker.
struct FalseAlarm {
  std::uint64_t seed = 0;
  std::string invariant;  // "refused" if the world would not run it
};

struct KillMatrix {
  std::vector<DefectOutcome> outcomes;  // in the order of the registry
  std::uint64_t clean_seeds = 0;
  std::vector<FalseAlarm> false_alarms;  // the first 10

  bool good() const;
  // Over the defects that were detected; 0 if none was.
  std::uint64_t median_seeds() const;
  std::uint64_t worst_seeds() const;
};

// Families of invariants, one detector each: "bits", "KL", "boundary", ...
std::vector<std::string_view> detectors();
std::string_view detector_of(std::string_view invariant);

Scenario kill_scenario(std::uint64_t seed);

KillMatrix measure_kills(const KillOptions& options);

}  // namespace lockstep::sim
