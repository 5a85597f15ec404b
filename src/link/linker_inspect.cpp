// The inspection half of the linker: shows, changes nothing.
#include "link/linker.h"

namespace lockstep {

namespace {

NodeView view_of(const Node& node) {
  NodeView view;
  view.id = node.id;
  view.is_root = node.is_root();
  view.parent = node.is_root() ? node.id : node.parent->id;
  view.begin = node.begin;
  view.hashes = node.hashes;
  view.full = node.full;
  view.swa = node.swa;
  view.state = node.state;
  view.children = node.children.size();
  view.full_locks = node.full_locks;
  view.swa_locks = node.swa_locks;
  view.state_locks = node.state_locks;
  view.full_stored = node.full_stored;
  view.swa_stored = node.swa_stored;
  view.state_stored = node.state_stored;
  view.offload_pending = node.full_pending.has_value() || node.state_pending;
  for (std::uint8_t pending : node.swa_pending) view.offload_pending |= pending != 0;
  view.loading = !node.loading.empty();
  return view;
}

void show(const RequestState& request, const std::function<void(const RequestRowsView&)>& visit) {
  std::vector<SnapshotView> tracked;
  for (const Checkpoint& checkpoint : request.tracked) {
    tracked.push_back({checkpoint.depth, checkpoint.slot.row()});
  }
  const std::vector<SnapshotView> columns = DraftColumns::views(request);
  RequestRowsView view;
  view.request = request.id;
  view.full = request.full;
  view.full_own_from = request.own_from;
  view.swa = request.swa;
  view.swa_own_from = request.swa_own_from;
  view.q = request.q.empty() ? kTrapRow : request.q.row();
  view.tracked = tracked;
  view.columns = columns;
  view.pending_source = request.pending_copy ? request.pending_copy->source : kTrapRow;
  view.clear_pending = request.clear_pending;
  visit(view);
}

}  // namespace

bool Linker::has(Component component) const {
  return pools_.has(component);
}

Rows Linker::capacity(Component component) const {
  return pools_.pool(component).capacity();
}

std::vector<Row> Linker::free_rows(Component component) const {
  const std::span<const Row> rows = pools_.pool(component).free_list();
  return {rows.begin(), rows.end()};
}

std::vector<Row> Linker::withdrawn_rows(Component component) const {
  const std::span<const Row> rows = pools_.pool(component).withdrawn();
  return {rows.begin(), rows.end()};
}

Rows Linker::evictable_rows(Component component) const {
  return tree_->evictable(component);
}

void Linker::for_each_node(const std::function<void(const NodeView&)>& visit) const {
  tree_->for_each_node([&](const Node& node) { visit(view_of(node)); });
}

void Linker::for_each_request(const std::function<void(const RequestRowsView&)>& visit) const {
  for (const auto& [id, request] : requests_) show(*request, visit);
}

void Linker::for_each_transfer(const std::function<void(const TransferRowsView&)>& visit) const {
  loads_->for_each([&](const Transfer& transfer, bool owned) {
    visit({transfer.component, transfer.rows, owned, true});
  });
  offloads_->for_each(
      [&](const Transfer& transfer) { visit({transfer.component, transfer.rows, false, false}); });
  quarantine_.for_each(
      [&](const TornRows& torn) { visit({torn.component, torn.rows, true, true}); });
  // What a LOAD has taken and no INSERT has passed on yet.
  for (const auto& [id, request] : requests_) {
    visit({Component::full, request->load.full.rows(), true, true});
    visit({Component::swa, request->load.swa.rows(), true, true});
    visit({Component::mamba, request->load.state.rows(), true, true});
    visit({Component::mamba, request->load.private_slot.rows(), true, true});
  }
}

std::size_t Linker::pending_loads() const {
  return loads_->size();
}

std::size_t Linker::pending_offloads() const {
  return offloads_->size();
}

bool Linker::request_rows(RequestId id,
                          const std::function<void(const RequestRowsView&)>& visit) const {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return false;
  show(*found->second, visit);
  return true;
}

bool Linker::node(NodeId id, const std::function<void(const NodeView&)>& visit) const {
  const Node* found = tree_->find(id);
  if (found == nullptr) return false;
  visit(view_of(*found));
  return true;
}

std::span<const std::byte> Linker::row_bytes(Component component, Row row) const {
  const PoolGroup& pools = pools_;
  return rank_.device.accelerator().host_view(pools.pool(component).bytes(row));
}

}  // namespace lockstep
