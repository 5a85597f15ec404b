#include "link/rank_vote.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"

namespace lockstep {

Tokens RankVote::combine(std::span<const std::vector<Tokens>> restorable, Tokens device_hit) const {
  CHECK("vote.ranks", !restorable.empty());
  std::vector<Tokens> common = restorable.front();
  for (const std::vector<Tokens>& other : restorable.subspan(1)) {
    std::vector<Tokens> both;
    std::ranges::set_intersection(common, other, std::back_inserter(both));
    common = std::move(both);
  }
  return common.empty() ? device_hit : common.back();
}

}  // namespace lockstep
