// Defects of MATCH.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> match_defects();

}  // namespace lockstep::sim::defects
