// The specification against small cases worked out by hand from the rules.
#include <set>

#include "catch.h"
#include "oracle/specification.h"

namespace lockstep::oracle {

namespace {

// Holds component c at page p (1: the first page) where it says so.
class Pages123 : public Holdings {
 public:
  std::set<std::uint32_t> full;
  std::set<std::uint32_t> swa;
  std::set<std::uint32_t> mamba;
  bool has(Component component, ContentId content) const override {
    const auto& pages = component == Component::full  ? full
                        : component == Component::swa ? swa
                                                      : mamba;
    return pages.contains(content.value());
  }
};

// Content i names the prefix of i pages.
std::vector<ContentId> chain(std::uint32_t pages) {
  std::vector<ContentId> all;
  for (std::uint32_t page = 1; page <= pages; ++page) all.push_back(ContentId{page});
  return all;
}

Geometry geometry(Tokens page, Tokens window) {
  Geometry geometry;
  geometry.page = page;
  geometry.window = window;
  geometry.has_swa = window > Tokens{0};
  geometry.has_mamba = true;
  return geometry;
}

std::vector<Tokens> restorable(const Specification& specification, const Holdings& store,
                               std::uint32_t pages, Tokens hit, Tokens length) {
  std::vector<Tokens> boundaries;
  specification.restorable(store, chain(pages), hit, length, boundaries);
  return boundaries;
}

std::vector<Tokens> lengths(std::initializer_list<std::int64_t> values) {
  std::vector<Tokens> all;
  for (std::int64_t value : values) all.push_back(Tokens{value});
  return all;
}

}  // namespace

TEST_CASE("a state serves only its own checkpoint, although all KV pages exist") {
  // Page 1, W = 3 (two window pages): six tokens in one chunk, one state, at 6.
  const Specification specification(geometry(Tokens{1}, Tokens{3}));
  Pages123 store;
  store.full = store.swa = {1, 2, 3, 4, 5, 6};
  store.mamba = {6};
  // Five shared tokens and one of its own: the sixth page is another content.
  std::vector<ContentId> five_shared = chain(5);
  five_shared.push_back(ContentId{60});
  std::vector<Tokens> found;
  specification.restorable(store, five_shared, Tokens{0}, Tokens{6}, found);
  REQUIRE(found.empty());
  REQUIRE(restorable(specification, store, 7, Tokens{0}, Tokens{7}) == lengths({6}));
}

TEST_CASE("the last token is always computed") {
  const Specification specification(geometry(Tokens{4}, Tokens{0}));
  Pages123 holdings;
  holdings.full = {1, 2};
  holdings.mamba = {1, 2};
  REQUIRE(specification.device_hit(holdings, chain(2), Tokens{8}) == Tokens{4});
  REQUIRE(specification.device_hit(holdings, chain(2), Tokens{9}) == Tokens{8});
  REQUIRE(restorable(specification, holdings, 2, Tokens{0}, Tokens{8}) == lengths({4}));
}

TEST_CASE("restorable lengths are sparse: each needs a state of its own") {
  // Four pages, prefilled two pages at a time: states at 2 and 4 pages.
  const Specification specification(geometry(Tokens{8}, Tokens{0}));
  Pages123 store;
  store.full = {1, 2, 3, 4};
  store.mamba = {2, 4};
  REQUIRE(restorable(specification, store, 3, Tokens{0}, Tokens{25}) == lengths({16}));
  REQUIRE(restorable(specification, store, 4, Tokens{0}, Tokens{32}) == lengths({16}));
  REQUIRE(restorable(specification, store, 4, Tokens{0}, Tokens{33}) == lengths({16, 32}));
}

TEST_CASE("a hole in FULL ends everything above it") {
  const Specification specification(geometry(Tokens{8}, Tokens{0}));
  Pages123 store;
  store.full = {1, 2, 4};
  store.mamba = {1, 2, 4};
  REQUIRE(restorable(specification, store, 4, Tokens{0}, Tokens{100}) == lengths({8, 16}));
}

TEST_CASE("SWA is needed in the window that ends at the boundary, not anywhere else") {
  // W = 17 on pages of 8: ceil(16 / 8) = 2 window pages.
  const Specification specification(geometry(Tokens{8}, Tokens{17}));
  Pages123 holdings;
  holdings.full = holdings.mamba = {1, 2, 3, 4};
  holdings.swa = {1, 3, 4};
  // At 1 page the window is cut off at the start; at 2 and 3 pages it meets the hole.
  REQUIRE(restorable(specification, holdings, 4, Tokens{0}, Tokens{33}) == lengths({8, 32}));
  REQUIRE(specification.device_hit(holdings, chain(4), Tokens{33}) == Tokens{32});
  holdings.swa = {1, 2, 3};
  REQUIRE(specification.device_hit(holdings, chain(4), Tokens{33}) == Tokens{24});
}

TEST_CASE(
    "above a device hit only the tail is asked of the store, and SWA reaches no further back") {
  const Specification specification(geometry(Tokens{8}, Tokens{17}));
  Pages123 store;
  store.full = {3, 4};
  store.swa = {3, 4};
  store.mamba = {3, 4};
  // The tail begins at 2 pages: a tail of one page needs one SWA page, a tail of two needs two.
  REQUIRE(restorable(specification, store, 4, Tokens{16}, Tokens{33}) == lengths({24, 32}));
  store.swa = {4};
  REQUIRE(restorable(specification, store, 4, Tokens{16}, Tokens{33}).empty());
}

TEST_CASE("a model without recurrent layers counts every page multiple as a state") {
  Geometry full_only = geometry(Tokens{8}, Tokens{0});
  full_only.has_mamba = false;
  const Specification specification(full_only);
  Pages123 holdings;
  holdings.full = {1, 2};
  REQUIRE(restorable(specification, holdings, 3, Tokens{0}, Tokens{25}) == lengths({8, 16}));
  REQUIRE(specification.device_hit(holdings, chain(3), Tokens{25}) == Tokens{16});
}

TEST_CASE("a legal hit has its FULL rows, its window and its state") {
  const Specification specification(geometry(Tokens{8}, Tokens{9}));
  Pages123 tree;
  tree.full = {1, 2};
  tree.swa = {2};
  tree.mamba = {2};
  REQUIRE(specification.is_legal_hit(tree, chain(2), Tokens{16}));
  tree.swa = {1};
  REQUIRE(!specification.is_legal_hit(tree, chain(2), Tokens{16}));
  tree.swa = {2};
  tree.mamba = {1};
  REQUIRE(!specification.is_legal_hit(tree, chain(2), Tokens{16}));
}

TEST_CASE("ranks agree on the largest common length, not on the minimum of their maxima") {
  const std::vector<std::vector<Tokens>> both{lengths({2, 4}), lengths({2})};
  REQUIRE(Specification::largest_common(both, Tokens{0}) == Tokens{2});
  const std::vector<std::vector<Tokens>> apart{lengths({2}), lengths({3})};
  REQUIRE(Specification::largest_common(apart, Tokens{1}) == Tokens{1});
  const std::vector<std::vector<Tokens>> alone{lengths({2, 4})};
  REQUIRE(Specification::largest_common(alone, Tokens{0}) == Tokens{4});
}

}  // namespace lockstep::oracle
