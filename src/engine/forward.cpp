#include "engine/forward.h"

#include <algorithm>

namespace lockstep::engine {

void RankSegment::cut(Tokens end, Tokens count, Bytes output_bytes) {
  rejected = output_bytes * (static_cast<std::int64_t>(tokens.size()) - count.value());
  tokens.resize(count.index());
  std::erase_if(snapshots, [&](const SnapshotView& state) { return state.depth > end; });
  const auto column = std::ranges::find(columns, end, &SnapshotView::depth);
  if (column != columns.end()) q = column->slot;
}

std::vector<SegmentView> Forward::view(std::size_t rank) const {
  std::vector<SegmentView> views;
  views.reserve(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const PlannedSegment& planned = segments[i];
    if (planned.dropped) continue;
    const RankSegment& local = ranks[rank].segments[i];
    views.push_back({planned.request, planned.start, local.tokens, local.full, local.swa, local.q,
                     local.snapshots, planned.drafts, local.results()});
  }
  return views;
}

}  // namespace lockstep::engine
