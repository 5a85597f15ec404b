// Defects of cancelling a request.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> cancel_defects();

}  // namespace lockstep::sim::defects
