// Defects of COMMIT.
#pragma once

#include <memory>

#include "link/parts.h"

namespace lockstep::sim::defects {

// COMMIT does not make the checkpoint the copy-on-write source: the request goes on from what its
// slot held.
std::unique_ptr<LinkParts> commit_skip_state();

}  // namespace lockstep::sim::defects
