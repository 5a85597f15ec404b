// A scenario as the source of a Catch2 test, for whoever wants to keep a finding next to unit
// tests.
#pragma once

#include <string>

#include "sim/scenario.h"

namespace lockstep::reports {

// A test case that runs the scenario and requires what it expects. It includes this project's
// headers and Catch2's.
std::string catch_test(const sim::Scenario& scenario);

}  // namespace lockstep::reports
