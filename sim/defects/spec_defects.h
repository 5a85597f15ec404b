// Defects of speculative decoding.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> spec_defects();

}  // namespace lockstep::sim::defects
