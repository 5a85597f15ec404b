// Which node goes next (semantics 5, Eviction): least recently used by a logical clock, ties by
// node id, per component.
//
// The index holds, per component, the nodes that eviction may take now, ordered by (stamp, id).
// Whoever changes locks, children, rows or recency of a node calls refresh().
#pragma once

#include <array>
#include <cstdint>
#include <set>

#include "core/component.h"
#include "tree/node.h"

namespace lockstep {

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // FULL: an unlocked leaf. SWA: a node with an unlocked SWA row. MAMBA: a node with an unlocked
  // state.
  virtual bool may_evict(const Node& node, Component component) const;
  // SWA only: whether this page's row may go with the node's others.
  virtual bool may_evict_page(const Node& node, std::size_t offset) const;
  // Whether a state whose window has lost a row goes, too.
  virtual bool loses_state(const Node& /*stranded*/) const { return true; }
  // Recency of a use at logical time `now`.
  virtual std::uint64_t stamp(std::uint64_t now) const { return now; }

  void refresh(Node& node);
  void forget(Node& node);
  // The next node to evict from, or null.
  Node* victim(Component component) const;
  // Nodes in the index; for MAMBA that is the number of states that can be evicted.
  std::size_t candidates(Component component) const { return index_[index(component)].size(); }

 private:
  struct Entry {
    std::uint64_t stamp;
    NodeId id;
    Node* node;  // not part of the order
    bool operator<(const Entry& other) const {
      return stamp != other.stamp ? stamp < other.stamp : id < other.id;
    }
  };
  std::array<std::set<Entry>, 3> index_;
};

}  // namespace lockstep
