// A request's page tables and lock follow the tree: after COMMIT and after each INSERT they name
// the canonical rows.
#pragma once

#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

// Tables of pages [from, node's end) become the tree's rows (trap where SWA is
// absent, and below the window that the lock covers), the lock
// moves to `node`, and the request's own rows start at the node's end.
void point_at_tree(const Rank& rank, RequestState& request, Node& node, Pages from);

}  // namespace lockstep
