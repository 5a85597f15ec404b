// How ranks come to one decision (semantics 3): sets are intersected, outcomes are ANDed.
#pragma once

#include <span>
#include <vector>

#include "core/ids.h"

namespace lockstep {

class RankVote {
 public:
  virtual ~RankVote() = default;
  // The largest length that every rank can restore, or `device_hit`: never the minimum of the
  // ranks' maxima.
  virtual Tokens combine(std::span<const std::vector<Tokens>> restorable, Tokens device_hit) const;
};

}  // namespace lockstep
