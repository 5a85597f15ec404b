// Defects of a step that runs while the one before it is in flight.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> ahead_defects();

}  // namespace lockstep::sim::defects
