// Defects of LOAD, of the load queue and of roll-back.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> load_defects();

}  // namespace lockstep::sim::defects
