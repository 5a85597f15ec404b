#include "engine/forward.h"

namespace lockstep::engine {

std::vector<SegmentView> Forward::view(std::size_t rank) const {
  std::vector<SegmentView> views;
  views.reserve(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const PlannedSegment& planned = segments[i];
    if (planned.dropped) continue;
    const RankSegment& local = ranks[rank].segments[i];
    views.push_back({planned.request, planned.start, local.tokens, local.full, local.swa, local.q,
                     local.snapshots, local.outputs.get()});
  }
  return views;
}

}  // namespace lockstep::engine
