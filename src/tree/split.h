// Splitting a node in two without losing anything that hangs on it (semantics 5, Split).
#pragma once

#include "core/ids.h"
#include "tree/node.h"

namespace lockstep {

// Each step moves one kind of attribute from `lower` (which keeps its id and its end) to `upper`
// (new, the first `count` pages). One step per kind, so that a lost attribute can be planted.
class NodeSplitter {
 public:
  virtual ~NodeSplitter() = default;
  // REQUIRES: 0 < count < lower.size(); `upper` is empty. Does not link the nodes.
  void divide(Node& upper, Node& lower, Pages count) const;

 protected:
  virtual void move_hashes(Node& upper, Node& lower, std::size_t count) const;
  virtual void move_rows(Node& upper, Node& lower, std::size_t count) const;
  virtual void move_locks(Node& upper, Node& lower, std::size_t count) const;
  virtual void move_flags(Node& upper, Node& lower, std::size_t count) const;
  virtual void place_state(Node& upper, Node& lower) const;
};

}  // namespace lockstep
