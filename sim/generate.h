// From a seed to a scenario (simulation.md, Workload, Faults).
//
// Swarm: each seed first draws which features it has (sim/features.h), then what they look like. A
// scenario disturbs in its first part and ends with {"run": "drain"}: faults stop, who is held is
// released, and everything must finish; sometimes a restore without any disturbance follows. Steps
// that name a request are picks, so that any other step may be deleted.
//
// Every seed gives a scenario that the reader accepts and that equals itself after a round trip.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "sim/features.h"
#include "sim/scenario.h"

namespace lockstep::sim {

// What a campaign is after. `nightly` is `smoke` with longer scenarios.
enum class Profile { smoke, nightly, ranks, pressure, races, numeric };
std::optional<Profile> find_profile(std::string_view name);
std::vector<std::string_view> profile_names();

struct GeneratorOptions {
  Profile profile = Profile::smoke;
  std::string preset = "fingerprint";
};

// One stream per topic: a choice that is added to one does not move the others.
struct RandomSources {
  SplitMix64 features;
  SplitMix64 sizes;
  SplitMix64 workload;
  SplitMix64 faults;
  SplitMix64 restarts;
  static RandomSources of(std::uint64_t seed);
};

Scenario generate(const GeneratorOptions& options, std::uint64_t seed);
// With random streams of the caller's; `seed` becomes the scenario's.
Scenario generate(const GeneratorOptions& options, std::uint64_t seed,
                  const RandomSources& sources);

}  // namespace lockstep::sim
