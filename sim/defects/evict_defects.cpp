#include "sim/defects/evict_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class Locked : public EvictionPolicy {
 public:
  bool may_evict(const Node& node, Component component) const override {
    if (node.is_root()) return false;
    switch (component) {
      case Component::full:
        return node.children.empty();
      case Component::swa:
        return EvictionPolicy::may_evict(node, component);
      case Component::mamba:
        return node.has_state();
    }
    return false;
  }
  bool may_evict_page(const Node&, std::size_t) const override { return true; }
};

class OrphanState : public EvictionPolicy {
 public:
  bool loses_state(const Node&) const override { return false; }
};

constexpr std::array kEvictDefects{
    Defect{"evict.locked", "C15", "C3", "H1", "eviction ignores locks",
           make<WithEvictionPolicy<Locked>>},
    Defect{"evict.orphan_state", "C12", "C6", "", "SWA gone, state kept",
           make<WithEvictionPolicy<OrphanState>>},
};

}  // namespace

std::span<const Defect> evict_defects() {
  return kEvictDefects;
}

}  // namespace lockstep::sim::defects
