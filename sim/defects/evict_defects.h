// Defects of eviction.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> evict_defects();

}  // namespace lockstep::sim::defects
