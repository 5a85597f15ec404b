#include "tree/eviction.h"

namespace lockstep {

bool EvictionPolicy::may_evict(const Node& node, Component component) const {
  if (node.is_root()) return false;
  switch (component) {
    case Component::full:
      return node.children.empty() && node.full_locks == 0;
    case Component::swa:
      for (std::size_t i = 0; i < node.swa.size(); ++i) {
        if (node.swa[i] != kTrapRow && may_evict_page(node, i)) return true;
      }
      return false;
    case Component::mamba:
      return node.has_state() && node.state_locks == 0;
  }
  return false;
}

bool EvictionPolicy::may_evict_page(const Node& node, std::size_t offset) const {
  return node.swa_locks[offset] == 0;
}

void EvictionPolicy::refresh(Node& node) {
  for (Component component : kComponents) {
    const std::size_t c = index(component);
    const bool is_candidate = !node.detached && may_evict(node, component);
    const std::uint64_t wanted = is_candidate ? node.used[c] : 0;
    if (wanted == node.indexed[c]) continue;
    if (node.indexed[c] != 0) index_[c].erase({node.indexed[c], node.id, nullptr});
    if (wanted != 0) index_[c].insert({wanted, node.id, &node});
    node.indexed[c] = wanted;
  }
}

void EvictionPolicy::forget(Node& node) {
  for (Component component : kComponents) {
    const std::size_t c = index(component);
    if (node.indexed[c] != 0) index_[c].erase({node.indexed[c], node.id, nullptr});
    node.indexed[c] = 0;
  }
}

Node* EvictionPolicy::victim(Component component) const {
  const auto& set = index_[index(component)];
  return set.empty() ? nullptr : set.begin()->node;
}

}  // namespace lockstep
