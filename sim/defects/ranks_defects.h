// Defects where ranks decide each for itself.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> ranks_defects();

}  // namespace lockstep::sim::defects
