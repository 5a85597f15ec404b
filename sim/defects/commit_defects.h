// Defects of COMMIT.
#pragma once

#include <span>

#include "sim/defects/defect.h"

namespace lockstep::sim::defects {

std::span<const Defect> commit_defects();

}  // namespace lockstep::sim::defects
