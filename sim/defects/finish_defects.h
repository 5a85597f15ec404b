// Defects of finishing a request.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> finish_defects();

}  // namespace lockstep::sim::defects
