// Deleting from a scenario without leaving anything behind that names what is gone.
#pragma once

#include "sim/scenario.h"

namespace lockstep::sim {

// Removes steps and faults that name a request which no earlier step submits, and prompts that
// nothing uses.
void drop_dangling(Scenario& scenario);

}  // namespace lockstep::sim
