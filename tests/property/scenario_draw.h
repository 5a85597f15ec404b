// Scenarios for properties: those of the generator (sim/generate.h), shrunken by the candidates of
// the shrinker, printed as JSON that `lockstep run` replays.
#pragma once

#include <vector>

#include "sim/generate.h"
#include "sim/scenario.h"

namespace lockstep::testing {

// REQUIRES: called while RapidCheck draws a case.
sim::Scenario draw_scenario(const sim::GeneratorOptions& options);

// Valid scenarios that are simpler by one change, the boldest first.
std::vector<sim::Scenario> simpler(const sim::Scenario& scenario);

}  // namespace lockstep::testing
