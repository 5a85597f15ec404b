// The numbers that decide where a boundary may lie: page, window, grids (semantics 1).
#pragma once

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/ids.h"

namespace lockstep {

struct Geometry {
  Tokens page{1};
  Tokens window{0};          // W: token t sees t-W+1 .. t; 0 where the model has no SWA layer
  Tokens state_chunk{1};     // a constant of the model; 1 where it has no recurrent layer
  Tokens track_interval{1};  // decode checkpoints lie on lcm(G, track_interval)
  bool has_full = true;
  bool has_swa = false;
  bool has_mamba = false;

  // max(1, ceil((W-1) / page)); 0 without SWA layers.
  Pages window_pages() const {
    if (!has_swa) return Pages{0};
    return Pages{std::max<std::int64_t>(1, (window.value() - 1 + page.value() - 1) / page.value())};
  }
  // G = lcm(state_chunk, page); the page alone without recurrent layers.
  Tokens prefill_grid() const {
    return has_mamba ? Tokens{std::lcm(state_chunk.value(), page.value())} : page;
  }
  Tokens decode_grid() const {
    return Tokens{std::lcm(prefill_grid().value(), track_interval.value())};
  }

  Tokens tokens(Pages pages) const { return page * pages.value(); }
  // Whole pages of [0, length).
  Pages pages(Tokens length) const { return Pages{length / page}; }
  // Pages that [0, length) touches.
  Pages pages_touched(Tokens length) const {
    return Pages{(length.value() + page.value() - 1) / page.value()};
  }
  Tokens page_floor(Tokens length) const { return floor_to(length, page); }
  // First page of the window below `boundary` (a page multiple): a resume there needs the SWA rows
  // from here on.
  Pages window_begin(Tokens boundary) const {
    return Pages{std::max<std::int64_t>(0, pages(boundary).value() - window_pages().value())};
  }

  static Tokens floor_to(Tokens length, Tokens grid) { return grid * (length / grid); }
  static bool on_grid(Tokens length, Tokens grid) { return length % grid == Tokens{0}; }
};

}  // namespace lockstep
