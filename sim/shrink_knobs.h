// The numbers and choices of a scenario that a shrinker can make simpler.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/scenario.h"

namespace lockstep::sim {

// A number somewhere in a scenario, which is simpler the closer it is to `low`.
struct Knob {
  std::function<std::int64_t(const Scenario&)> get;
  std::function<void(Scenario&, std::int64_t)> set;
  std::int64_t low = 0;
};

// All numbers of `scenario`; valid for scenarios with the same prompts, steps and faults.
std::vector<Knob> knobs_of(const Scenario& scenario);

// Changes of one thing each that make a scenario simpler: a policy, a size or the model as by
// default, a filter or an option gone.
std::vector<std::function<void(Scenario&)>> simplifications_of(const Scenario& scenario);

}  // namespace lockstep::sim
