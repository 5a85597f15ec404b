// Defects of names: what a page hash leaves out.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> key_defects();

}  // namespace lockstep::sim::defects
