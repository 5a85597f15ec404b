// Defects of the deferred copy into the private slot.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> cow_defects();

}  // namespace lockstep::sim::defects
