// Defects of recurrent checkpoints: which state a depth names.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> state_defects();

}  // namespace lockstep::sim::defects
