// Defects of OFFLOAD and of what is believed to be stored.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> offload_defects();

}  // namespace lockstep::sim::defects
