// Planted defects by id: each is a small subclass that changes one step of one class, chosen by a
// factory. One table for all of them, in order of their phases.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "engine/parts.h"
#include "sim/defects/defect.h"

namespace lockstep::sim {

// The parts of a run: the linker's own, or with a planted defect. At most one defect at a time; an
// unknown id is an error that lists the known ones.
Result<std::unique_ptr<engine::Parts>> make_parts(std::span<const std::string> defects);

std::vector<Defect> all_defects();

}  // namespace lockstep::sim
