// Decisions of the linker that need no device: which lengths a rank can restore, and what ranks
// agree on. The expected values are the examples of the semantics, or worked out by hand.
#include "catch.h"
#include "link/lookup.h"
#include "link/rank_vote.h"
#include "link/transfer.h"

namespace lockstep {
namespace {

std::vector<Tokens> lengths(std::initializer_list<int> values) {
  std::vector<Tokens> tokens;
  for (int value : values) tokens.emplace_back(value);
  return tokens;
}

TEST_CASE("ranks intersect their sets and take the largest common length") {
  const RankVote vote;
  const auto combine = [&](std::vector<std::vector<Tokens>> ranks) {
    return vote.combine(ranks, Tokens{0});
  };
  REQUIRE(combine({lengths({2, 4}), lengths({2})}) == Tokens{2});
  // The minimum of the maxima would be 2, which the second rank cannot restore.
  REQUIRE(combine({lengths({2}), lengths({3})}) == Tokens{0});
  REQUIRE(combine({lengths({1, 2, 5}), lengths({2, 5}), lengths({5})}) == Tokens{5});
  REQUIRE(combine({lengths({}), lengths({1})}) == Tokens{0});
  REQUIRE(vote.combine(std::vector{lengths({6}), lengths({7})}, Tokens{4}) == Tokens{4});
}

TEST_CASE("a transfer names pages one by one and a checkpoint by its last page") {
  std::vector<PageHash> run(3);
  for (std::size_t i = 0; i < run.size(); ++i) run[i].bytes[0] = static_cast<std::byte>(i + 1);
  const TransferPlanner planner;
  const Transfer pages =
      planner.pages(Component::full, run, {Pages{4}, Pages{7}}, {Row{1}, Row{2}, Row{3}});
  REQUIRE(pages.hashes == run);
  REQUIRE(pages.pages == PageRange{Pages{4}, Pages{7}});
  const Transfer state = planner.state(run, Pages{7}, Row{9});
  REQUIRE(state.hashes == std::vector{run[2]});
  REQUIRE(state.pages == PageRange{Pages{6}, Pages{7}});
  REQUIRE(state.rows == std::vector{Row{9}});
}

}  // namespace
}  // namespace lockstep
