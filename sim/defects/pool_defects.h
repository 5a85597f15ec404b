// Defects of pools and of running out of rows.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> pool_defects();

}  // namespace lockstep::sim::defects
