#include "link/tables.h"

#include <algorithm>

namespace lockstep {

void point_at_tree(const Rank& rank, RequestState& request, Node& node, Pages from) {
  const bool has_swa = rank.geometry.has_swa;
  const std::size_t end = node.end().index();
  request.full.resize(std::max(request.full.size(), end), kTrapRow);
  if (has_swa) request.swa.resize(std::max(request.swa.size(), end), kTrapRow);
  for (const Node* n = &node; n != nullptr && n->end() > from; n = n->parent) {
    for (Pages page = std::max(from, n->begin); page < n->end(); ++page) {
      request.full[page.index()] = n->full[n->offset(page)];
      if (has_swa) request.swa[page.index()] = n->swa[n->offset(page)];
    }
  }
  // Below the locked window the tree may evict at any time, and no forward looks there; nor below
  // the cursor.
  if (has_swa) {
    const Pages window = rank.tree.window_of(node).begin;
    const Pages below = std::max(window, rank.geometry.pages(request.swa_cursor));
    const std::size_t count = std::min(below.index(), request.swa.size());
    std::fill_n(request.swa.begin(), count, kTrapRow);
  }
  request.own_from = node.end();
  request.swa_own_from = std::max(request.swa_own_from, node.end());
  request.node = &node;
  request.lock = rank.tree.lock(request.id, node, LockHolder::request, rank.tree.window_of(node));
}

}  // namespace lockstep
