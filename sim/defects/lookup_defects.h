// Defects of LOOKUP.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> lookup_defects();

}  // namespace lockstep::sim::defects
