#include "sim/defects/split_defects.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class StateToParent : public NodeSplitter {
 protected:
  void place_state(Node& upper, Node& lower) const override {
    upper.state = std::exchange(lower.state, kTrapRow);
  }
};

class LockLost : public NodeSplitter {
 protected:
  void move_locks(Node& upper, Node& lower, std::size_t count) const override {
    NodeSplitter::move_locks(upper, lower, count);
    upper.full_locks = 0;
    std::ranges::fill(upper.swa_locks, 0u);
  }
};

// All but the one under which its parent holds it.
class HashLost : public NodeSplitter {
 protected:
  void move_hashes(Node& upper, Node& lower, std::size_t count) const override {
    NodeSplitter::move_hashes(upper, lower, count);
    std::fill(upper.hashes.begin() + 1, upper.hashes.end(), PageHash{});
  }
};

constexpr std::array kSplitDefects{
    Defect{"split.state_to_parent", "C01 C11", "B4", "", "the state moves to the upper part",
           make<WithNodeSplitter<StateToParent>>},
    Defect{"split.lock_lost", "C11", "C3", "", "the upper part is unlocked",
           make<WithNodeSplitter<LockLost>>},
    Defect{"split.hash_lost", "C11", "C6", "", "the upper part is without hashes",
           make<WithNodeSplitter<HashLost>>},
};

}  // namespace

std::span<const Defect> split_defects() {
  return kSplitDefects;
}

}  // namespace lockstep::sim::defects
