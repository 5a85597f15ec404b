// The parts of the generator (sim/generate.h).
#pragma once

#include "sim/draw.h"
#include "sim/features.h"
#include "sim/generate.h"
#include "sim/scenario.h"

namespace lockstep::sim {

// Rows without which the largest submitted request would be refused.
struct Needs {
  Rows full_pages;
  Rows swa_pages;
};
Needs needs_of(const Scenario& scenario);

// Prompts and steps. REQUIRES: model, page and grid of `scenario` are set.
void draw_workload(const FeatureSet& features, Profile profile, Draw draw, Scenario& scenario);

// Other sizes, policies or models for the engine to come back with. REQUIRES: all else but faults
// is drawn.
void draw_restarts(const FeatureSet& features, Draw draw, Scenario& scenario);

// Faults at two levels of rarity: which sites exist at all, then when each fires. REQUIRES: the
// steps are drawn.
void draw_faults(const FeatureSet& features, Draw draw, Scenario& scenario);

}  // namespace lockstep::sim
