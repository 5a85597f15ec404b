#include "link/draft_columns.h"

namespace lockstep {

Tokens DraftColumns::take(RequestState& request, Tokens start, Tokens drafts) {
  if (!rank_.has(Component::mamba)) return drafts;
  request.drafts_from = start;
  OwnedRows& columns = request.columns;
  const Rows wanted{drafts.value()};
  if (columns.size() < wanted) {
    columns.append(allocator_.allocate_up_to(request.id, Component::mamba, wanted - columns.size(),
                                             Purpose::draft));
  } else if (columns.size() > wanted) {
    OwnedRows kept = columns.take_front(wanted);
    columns.release();
    columns = std::move(kept);
  }
  return Tokens{columns.size().value()};
}

void DraftColumns::keep(RequestState& request, Tokens end) {
  const Tokens in_q = request.drafts_from + Tokens{request.columns.size().value() + 1};
  if (end < in_q) {
    const auto column = static_cast<std::int64_t>(column_of(request, end));
    OwnedRows before = request.columns.take_front(Rows{column});
    OwnedRows accepted = request.columns.take_front(Rows{1});
    request.q.release();
    request.q = std::move(accepted);
  }
  request.columns.release();
}

std::size_t DraftColumns::column_of(const RequestState& request, Tokens end) const {
  return (end - request.drafts_from).index() - 1;
}

std::vector<SnapshotView> DraftColumns::views(const RequestState& request) {
  std::vector<SnapshotView> views;
  Tokens depth = request.drafts_from;
  for (Row slot : request.columns.rows()) views.push_back({++depth, slot});
  return views;
}

}  // namespace lockstep
