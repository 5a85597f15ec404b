// How long the prompts of a scenario are, without running it.
#pragma once

#include <string>

#include "sim/scenario.h"

namespace lockstep::sim {

// At most: a request whose output starts the prompt may have ended early, and the output of a fork
// counts nothing. REQUIRES: the prompt exists and its starts form no cycle.
Tokens prompt_length(const Scenario& scenario, const std::string& prompt);

// The most tokens that a submitted request feeds: prompt and generated tokens but the last one.
Tokens longest_request(const Scenario& scenario);

}  // namespace lockstep::sim
