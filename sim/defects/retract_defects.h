// Defects of retracting a request.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> retract_defects();

}  // namespace lockstep::sim::defects
