// What a scenario's field tables cannot say: that names refer to something, and in the right order.
#pragma once

#include "core/result.h"
#include "sim/scenario.h"

namespace lockstep::sim {

// Prompts, requests and ranks that a scenario names exist; a request is submitted once and before
// it is named by a step; prompts do not start with themselves. The error begins with the JSON
// pointer.
Result<void> check_references(const Scenario& scenario);

}  // namespace lockstep::sim
