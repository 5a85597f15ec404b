#include "link/stored_flags.h"

#include <algorithm>

namespace lockstep {

std::vector<Node*> nodes_of_run(Node& endpoint, Pages begin) {
  std::vector<Node*> nodes;
  for (Node* n = &endpoint; !n->is_root() && n->end() > begin; n = n->parent) nodes.push_back(n);
  std::ranges::reverse(nodes);
  return nodes;
}

void flag_full(const Rank& rank, Node& node) {
  const bool below_flagged = node.parent->is_root() || node.parent->full_stored;
  if (node.full_stored || !below_flagged) return;
  node.full_stored = true;
  rank.emit(kNoRequest, StoredFlagSet{node.id, Component::full, {node.begin, node.end()}});
}

void flag_swa(const Rank& rank, Node& node, PageRange pages) {
  for (Pages page = std::max(pages.begin, node.begin); page < std::min(pages.end, node.end());
       ++page) {
    const std::size_t i = node.offset(page);
    if (node.swa[i] == kTrapRow || node.swa_stored[i] != 0) continue;
    node.swa_stored[i] = 1;
    rank.emit(kNoRequest, StoredFlagSet{node.id, Component::swa, {page, page + Pages{1}}});
  }
}

void flag_state(const Rank& rank, Node& node) {
  if (!node.has_state() || node.state_stored) return;
  node.state_stored = true;
  rank.emit(kNoRequest, StoredFlagSet{node.id, Component::mamba, {node.end(), node.end()}});
}

void flag_proved(const Rank& rank, Node& endpoint, Pages begin) {
  const PageRange window = rank.tree.window_of(endpoint);
  for (Node* node : nodes_of_run(endpoint, begin)) {
    flag_full(rank, *node);
    if (!node->full_stored) return;
    if (rank.has(Component::swa))
      flag_swa(rank, *node, {std::max(window.begin, begin), window.end});
  }
  flag_state(rank, endpoint);
}

}  // namespace lockstep
