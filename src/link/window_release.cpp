#include "link/window_release.h"

#include <algorithm>

namespace lockstep {

void WindowRelease::run(RequestState& request, Tokens start) {
  const Geometry& geometry = rank_.geometry;
  if (!geometry.has_swa) return;
  Tokens bound = start - (geometry.window - Tokens{1});
  if (const auto checkpoint = oldest_donatable(request)) {
    bound = std::min(bound, *checkpoint - geometry.tokens(geometry.window_pages()));
  }
  if (bound <= Tokens{0}) return;
  const Pages keep_from = geometry.pages(bound);
  const Pages count =
      std::min(keep_from - request.swa_own_from, Pages{request.own_swa.size().value()});
  if (count > Pages{0}) give_back(request, count);
}

void WindowRelease::give_back(RequestState& request, Pages count) {
  OwnedRows gone = request.own_swa.take_front(Rows{count.value()});
  for (Pages page = request.swa_own_from; page < request.swa_own_from + count; ++page) {
    request.swa[page.index()] = kTrapRow;
  }
  request.swa_own_from += count;
  request.swa_cursor = std::max(request.swa_cursor, rank_.geometry.tokens(request.swa_own_from));
  rank_.emit(request.id, RowsReleased{gone.rows(), request.swa_cursor});
  gone.release();
}

std::optional<Tokens> WindowRelease::oldest_donatable(const RequestState& request) const {
  // Without recurrent layers every page multiple that has been fed can end an INSERT.
  if (!rank_.geometry.has_mamba) return rank_.geometry.page_floor(request.fed);
  for (const Checkpoint& checkpoint : request.tracked) {
    if (!checkpoint.superseded) return checkpoint.depth;
  }
  return std::nullopt;
}

}  // namespace lockstep
