// Roll-back of a failed load (semantics 7): what it adopted leaves the tree, and nothing more.
#pragma once

#include <span>
#include <vector>

#include "link/load_queue.h"
#include "link/rank.h"
#include "link/transfer.h"

namespace lockstep {

class RollBackPhase {
 public:
  explicit RollBackPhase(const Rank& rank) : rank_(rank) {}
  virtual ~RollBackPhase() = default;

  // The nodes that the load's roll-back changes or detaches: whoever has one of them on its locked
  // path is a sharer.
  virtual std::vector<const Node*> scope(Node& endpoint, std::span<const Transfer> adopted) const;
  // Detaches the nodes that the load created, with all below them; an older node loses only the SWA
  // rows and the state that the load adopted. Returns the rows that left.
  virtual std::vector<TornRows> run(Node& endpoint, std::span<const Transfer> adopted);

 private:
  Node* created(Node& endpoint, std::span<const Transfer> adopted) const;

  const Rank& rank_;
};

}  // namespace lockstep
