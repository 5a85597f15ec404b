// The moves that a {"pick": k} step chooses among: what can be done to the requests that exist at
// that moment. A move is an ordinary step, so that a run can be written down with what was chosen.
//
//   cancel    every request that has not ended
//   retract   every running request
//   hold      every request that has not ended and is not to be held yet, at every point that it
//   has
//             not reached
//   release   every request that is held
//   fork      every request; where (a page edge, one token beside it, or its end), with what tail,
//             for how many tokens. The fork keeps the namespace.
#pragma once

#include <optional>

#include "sim/scenario.h"

namespace lockstep::sim {

class World;

// Nothing if no move of that kind is valid now.
std::optional<Step> choose_move(const PickStep& pick, const Scenario& scenario, World& world);

}  // namespace lockstep::sim
