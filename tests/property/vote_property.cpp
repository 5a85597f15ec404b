// The vote of ranks over restorable lengths is the intersection of their sets, and its largest
// member, whatever the sets: never the minimum of their maxima.
#include <bitset>

#include <rapidcheck.h>

#include "catch.h"
#include "link/rank_vote.h"
#include "property.h"

namespace lockstep {
namespace {

constexpr std::size_t kPages = 12;
using Lengths = std::bitset<kPages>;  // bit i: i + 1 pages beyond the device hit

std::vector<Tokens> in_tokens(const Lengths& lengths, Tokens hit, Tokens page) {
  std::vector<Tokens> all;
  for (std::size_t i = 0; i < kPages; ++i) {
    if (lengths.test(i)) all.push_back(hit + page * static_cast<std::int64_t>(i + 1));
  }
  return all;
}

}  // namespace

TEST_CASE("vote = intersection") {
  testing::require_property("vote = intersection", 2000, [] {
    const Tokens page{*rc::gen::inRange<std::int64_t>(1, 9)};
    const Tokens hit = page * *rc::gen::inRange<std::int64_t>(0, 4);
    const auto masks = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0u, 1u << kPages)));
    Lengths common = Lengths().set();
    std::vector<std::vector<Tokens>> sets;
    for (const std::uint32_t mask : masks) {
      common &= Lengths(mask);
      sets.push_back(in_tokens(Lengths(mask), hit, page));
    }
    const std::vector<Tokens> left = in_tokens(common, hit, page);
    const Tokens expected = left.empty() ? hit : left.back();
    RC_CLASSIFY(left.empty(), "nothing in common");
    RC_ASSERT(RankVote().combine(sets, hit) == expected);
  });
}

}  // namespace lockstep
