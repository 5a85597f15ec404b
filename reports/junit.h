// JUnit XML, as CI servers read it: one test case per scenario; a failure lists what was not
// expected and what was violated, a scenario that could not be run is an error.
#pragma once

#include <span>
#include <string>

#include "reports/run_entry.h"

namespace lockstep::reports {

std::string junit_xml(std::span<const RunEntry> entries);

}  // namespace lockstep::reports
