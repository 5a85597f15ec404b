// What the linker believes the store to hold: flags on nodes (FULL and state one each, SWA one per
// page). A FULL flag is only set below a flagged parent, so that a flagged node's whole chain is in
// the store (invariant S2).
#pragma once

#include <vector>

#include "link/rank.h"

namespace lockstep {

// The nodes of `endpoint`'s path that lie in [begin, endpoint's end), upper ones first.
std::vector<Node*> nodes_of_run(Node& endpoint, Pages begin);

// Each sets a flag that is not set yet, if the rows are there, and reports it.
void flag_full(const Rank& rank, Node& node);
void flag_swa(const Rank& rank, Node& node, PageRange pages);
void flag_state(const Rank& rank, Node& node);

// Marks what LOOKUP has proved to be in the store, once the load of [begin, endpoint's end) has
// landed: FULL of the chain, SWA of the window, the endpoint's state; but only below a flagged
// parent.
void flag_proved(const Rank& rank, Node& endpoint, Pages begin);

}  // namespace lockstep
