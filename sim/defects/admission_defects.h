// Defects of admission.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> admission_defects();

}  // namespace lockstep::sim::defects
