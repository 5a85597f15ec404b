// Defects of the sliding window: the cursor and the rows below it.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> swa_defects();

}  // namespace lockstep::sim::defects
