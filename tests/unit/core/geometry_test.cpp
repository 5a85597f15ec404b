#include "core/geometry.h"

#include "catch.h"

namespace lockstep {
namespace {

Geometry windowed(Tokens window, Tokens page) {
  Geometry geometry;
  geometry.has_swa = true;
  geometry.window = window;
  geometry.page = page;
  return geometry;
}

// Token t sees t-W+1 .. t, so resuming needs the W-1 tokens before the boundary; by hand:
// ceil(511/128) = 4, ceil(2/1) = 2, at least one page, ceil(63/16) = 4, ceil(128/128) = 1.
TEST_CASE("window_pages is the pages of the last W-1 tokens, at least one") {
  REQUIRE(windowed(Tokens{512}, Tokens{128}).window_pages() == Pages{4});
  REQUIRE(windowed(Tokens{3}, Tokens{1}).window_pages() == Pages{2});
  REQUIRE(windowed(Tokens{1}, Tokens{1}).window_pages() == Pages{1});
  REQUIRE(windowed(Tokens{64}, Tokens{16}).window_pages() == Pages{4});
  REQUIRE(windowed(Tokens{129}, Tokens{128}).window_pages() == Pages{1});
  REQUIRE(windowed(Tokens{130}, Tokens{128}).window_pages() == Pages{2});
  REQUIRE(windowed(Tokens{4}, Tokens{128}).window_pages() == Pages{1});
}

TEST_CASE("without SWA layers there is no window") {
  Geometry geometry;
  geometry.page = Tokens{16};
  REQUIRE(geometry.window_pages() == Pages{0});
  REQUIRE(geometry.window_begin(Tokens{64}) == Pages{4});
}

TEST_CASE("window_begin stops at the start of the sequence") {
  const Geometry geometry = windowed(Tokens{64}, Tokens{16});
  REQUIRE(geometry.window_begin(Tokens{160}) == Pages{6});
  REQUIRE(geometry.window_begin(Tokens{64}) == Pages{0});
  REQUIRE(geometry.window_begin(Tokens{32}) == Pages{0});
}

TEST_CASE("the prefill grid is lcm(state_chunk, page), the decode grid that with the interval") {
  Geometry geometry;
  geometry.page = Tokens{16};
  geometry.state_chunk = Tokens{64};
  geometry.track_interval = Tokens{96};
  REQUIRE(geometry.prefill_grid() == Tokens{16});  // no recurrent layer
  geometry.has_mamba = true;
  REQUIRE(geometry.prefill_grid() == Tokens{64});
  REQUIRE(geometry.decode_grid() == Tokens{192});
  geometry.page = Tokens{128};
  REQUIRE(geometry.prefill_grid() == Tokens{128});
  REQUIRE(geometry.decode_grid() == Tokens{384});
}

TEST_CASE("lengths convert to whole and touched pages") {
  Geometry geometry;
  geometry.page = Tokens{16};
  REQUIRE(geometry.pages(Tokens{47}) == Pages{2});
  REQUIRE(geometry.pages_touched(Tokens{47}) == Pages{3});
  REQUIRE(geometry.pages_touched(Tokens{48}) == Pages{3});
  REQUIRE(geometry.pages_touched(Tokens{0}) == Pages{0});
  REQUIRE(geometry.page_floor(Tokens{47}) == Tokens{32});
  REQUIRE(geometry.tokens(Pages{3}) == Tokens{48});
  REQUIRE(Geometry::floor_to(Tokens{1279}, Tokens{128}) == Tokens{1152});
  REQUIRE(Geometry::on_grid(Tokens{1152}, Tokens{128}));
  REQUIRE_FALSE(Geometry::on_grid(Tokens{1279}, Tokens{128}));
}

}  // namespace
}  // namespace lockstep
