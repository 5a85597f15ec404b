// Defects of splitting a node.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> split_defects();

}  // namespace lockstep::sim::defects
