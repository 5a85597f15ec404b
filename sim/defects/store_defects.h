// Defects of believing the store.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> store_defects();

}  // namespace lockstep::sim::defects
