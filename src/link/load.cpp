#include "link/load.h"

#include <algorithm>

namespace lockstep {

bool LoadPhase::run(RequestState& request, Tokens boundary, LoadStage stage) {
  const Geometry& geometry = rank_.geometry;
  const Pages tail = geometry.pages(boundary - request.device_hit);
  LoadRows& rows = request.load;
  switch (stage) {
    case LoadStage::full:
      return take(request, Component::full, Rows{tail.value()}, Purpose::load, rows.full);
    case LoadStage::swa:
      return take(request, Component::swa, Rows{std::min(geometry.window_pages(), tail).value()},
                  Purpose::load, rows.swa);
    case LoadStage::state:
      return take(request, Component::mamba, Rows{1}, Purpose::state_target, rows.state);
    case LoadStage::private_slot:
      return private_slot_is_sure(request, geometry.pages(boundary));
  }
  return false;
}

void LoadPhase::planned(const RequestState& request, Tokens boundary) const {
  const LoadRows& rows = request.load;
  const Row state = rows.state.empty() ? kTrapRow : rows.state.row();
  rank_.emit(request.id,
             LoadPlanned{request.device_hit, boundary, rows.full.rows(), rows.swa.rows(), state});
}

void LoadPhase::abort(RequestState& request) {
  give_back(request, Component::mamba, request.load.private_slot);
  give_back(request, Component::mamba, request.load.state);
  give_back(request, Component::swa, request.load.swa);
  give_back(request, Component::full, request.load.full);
}

bool LoadPhase::secure_private_slot(RequestState& request) {
  if (!request.q.empty()) return true;
  return take(request, Component::mamba, Rows{1}, Purpose::private_slot, request.q);
}

bool LoadPhase::private_slot_is_sure(RequestState& request, Pages boundary) {
  if (!rank_.has(Component::mamba) || !request.q.empty()) return true;
  const bool others_come_between = rank_.config.publish == PublishPolicy::after_load;
  const TreePath path =
      rank_.tree.walk(request.namespace_hash, std::span(request.hashes).first(boundary.index()));
  const Node* node = rank_.tree.node_ending_at(path, boundary);
  if (!others_come_between && node != nullptr && node->has_state()) return true;
  return take(request, Component::mamba, Rows{1}, Purpose::private_slot, request.load.private_slot);
}

bool LoadPhase::take(RequestState& request, Component component, Rows count, Purpose purpose,
                     OwnedRows& into) {
  if (!rank_.has(component) || count == Rows{0}) return true;
  std::optional<OwnedRows> rows = allocator_.allocate(request.id, component, count, purpose);
  if (!rows) return false;
  into = std::move(*rows);
  return true;
}

void LoadPhase::give_back(RequestState& request, Component component, OwnedRows& rows) {
  if (rows.empty()) return;
  rank_.emit(request.id, LoadAborted{component, rows.rows()});
  rows.release();
}

}  // namespace lockstep
