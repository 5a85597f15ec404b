#include "link/load.h"

#include <algorithm>

namespace lockstep {

bool LoadPhase::run(RequestState& request, Tokens boundary) {
  const Geometry& geometry = rank_.geometry;
  const Pages tail = geometry.pages(boundary - request.device_hit);
  const Rows full{tail.value()};
  const Rows swa{std::min(geometry.window_pages(), tail).value()};
  LoadRows& rows = request.load;
  const bool taken = take(request, Component::full, full, Purpose::load, rows.full) &&
                     take(request, Component::swa, swa, Purpose::load, rows.swa) &&
                     take(request, Component::mamba, Rows{1}, Purpose::state_target, rows.state) &&
                     private_slot_is_sure(request, geometry.pages(boundary));
  if (!taken) {
    abort(request);
    return false;
  }
  const Row state = rows.state.empty() ? kTrapRow : rows.state.row();
  rank_.emit(request.id,
             LoadPlanned{request.device_hit, boundary, rows.full.rows(), rows.swa.rows(), state});
  return true;
}

void LoadPhase::abort(RequestState& request) {
  give_back(request, Component::mamba, request.load.state);
  give_back(request, Component::swa, request.load.swa);
  give_back(request, Component::full, request.load.full);
}

bool LoadPhase::secure_private_slot(RequestState& request) {
  if (!rank_.has(Component::mamba) || !request.q.empty()) return true;
  return take(request, Component::mamba, Rows{1}, Purpose::private_slot, request.q);
}

bool LoadPhase::private_slot_is_sure(RequestState& request, Pages boundary) {
  if (!rank_.has(Component::mamba) || !request.q.empty()) return true;
  const TreePath path =
      rank_.tree.walk(request.namespace_hash, std::span(request.hashes).first(boundary.index()));
  const Node* node = rank_.tree.node_ending_at(path, boundary);
  if (node != nullptr && node->has_state()) return true;
  return secure_private_slot(request);
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
