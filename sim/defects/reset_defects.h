// Defects of emptying the device's tree.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> reset_defects();

}  // namespace lockstep::sim::defects
