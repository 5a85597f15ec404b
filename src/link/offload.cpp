#include "link/offload.h"

#include <algorithm>
#include <utility>

#include "link/load_queue.h"
#include "link/stored_flags.h"

namespace lockstep {

void OffloadQueue::queue(OffloadId id, Node& node, std::vector<Transfer> transfers,
                         std::optional<OffloadId> depends_on) {
  auto offload = std::make_shared<Offload>();
  offload->id = id;
  offload->node = node.id;
  offload->run = {node.begin, node.end()};
  offload->lock = lock_source(node, transfers);
  offload->transfers = std::move(transfers);
  offload->depends_on = depends_on;
  std::vector<TransferView> views;
  for (const Transfer& transfer : offload->transfers) views.push_back(transfer.view());
  rank_.emit(kNoRequest, OffloadQueued{offload->id, node.id, views});
  offloads_.push_back(offload);

  order_behind_writers();
  copy_out(offload);
  DeviceEvent copied;
  rank_.device.record(StreamKind::offload, copied);
  rank_.device.on_reached(copied, [this, offload] { put(offload); });
}

OffloadQueue::~OffloadQueue() {
  for (const auto& offload : offloads_) offload->lock.release();
}

LockTicket OffloadQueue::lock_source(Node& node, const std::vector<Transfer>& transfers) {
  PageRange swa{node.end(), node.end()};
  for (const Transfer& transfer : transfers) {
    if (transfer.component == Component::swa) swa.begin = std::min(swa.begin, transfer.pages.begin);
  }
  return rank_.tree.lock(kNoRequest, node, LockHolder::offload, swa);
}

void OffloadQueue::order_behind_writers() {
  DeviceEvent written;
  rank_.device.record(StreamKind::compute, written);
  rank_.device.wait(StreamKind::offload, written);
}

void OffloadQueue::copy_out(const std::shared_ptr<Offload>& offload) {
  Op op{.name = "offload.copy", .link = Link::host_link};
  PoolGroup& pools = rank_.pools;
  std::vector<std::span<const std::byte>> sources;
  for (const Transfer& transfer : offload->transfers) {
    const RowPool& pool = std::as_const(pools).pool(transfer.component);
    for (Row row : transfer.rows) {
      sources.push_back(pool.bytes(row));
      op.bytes += Bytes{std::ssize(sources.back())};
    }
  }
  offload->rows = rank_.device.accelerator().staging(op.bytes);
  std::span<std::byte> target = offload->rows.get();
  for (const std::span<const std::byte> source : sources) {
    op.copies.add(target.first(source.size()), source);
    target = target.subspan(source.size());
  }
  op.accesses = [offload, &pools](const AccessSink& sink) {
    for (const Transfer& transfer : offload->transfers) {
      for (const LayerPart& part : pools.pool(transfer.component).layout().parts) {
        for (Row row : transfer.rows) {
          sink({transfer.component, row, part.layer, part.part, AccessMode::read});
        }
      }
    }
  };
  rank_.device.enqueue(StreamKind::offload, std::move(op));
}

void OffloadQueue::put(const std::shared_ptr<Offload>& offload) {
  std::vector<PutItem> items;
  std::span<const std::byte> rows = offload->rows.get();
  for (const Transfer& transfer : offload->transfers) {
    const RowLayout& layout = rank_.pools.pool(transfer.component).layout();
    Pages page = transfer.pages.begin;
    for (const PageHash& hash : transfer.hashes) {
      const std::span<const std::byte> row = rows.first(layout.row_bytes.index());
      rows = rows.subspan(row.size());
      const std::vector<std::byte> digests = row_digests(layout, row);
      std::vector<std::byte>& object = offload->objects.emplace_back();
      object.reserve(row.size() + digests.size());
      object.assign(row.begin(), row.end());
      object.insert(object.end(), digests.begin(), digests.end());
      items.push_back({rank_.keys.object_key(hash, transfer.component),
                       object,
                       {rank_.id, kNoRequest, transfer.component, LayerId{0}, page}});
      ++page;
    }
  }
  offload->rows = {};
  offload->ticket = rank_.store.put(std::move(items));
}

void OffloadQueue::pump() {
  for (const auto& offload : offloads_) {
    if (offload->over || !offload->ticket) continue;
    const auto results = rank_.store.poll(*offload->ticket);
    if (!results) continue;
    offload->over = true;
    offload->good = std::ranges::all_of(
        *results, [](const StoreResult& result) { return result.status == StoreStatus::ok; });
    offload->objects.clear();
  }
}

std::optional<FinishedOffload> OffloadQueue::oldest_finished() const {
  if (offloads_.empty() || !offloads_.front()->over) return std::nullopt;
  const Offload& oldest = *offloads_.front();
  return FinishedOffload{oldest.id, oldest.good && !oldest.doomed};
}

void OffloadQueue::settle(OffloadId id, bool good) {
  CHECK("offload.settle.order", !offloads_.empty() && offloads_.front()->id == id);
  const std::shared_ptr<Offload> offload = offloads_.front();
  offloads_.pop_front();
  clear_marks(*offload);
  if (good) set_flags(*offload);
  if (!good) fail_dependents(id);
  rank_.emit(kNoRequest, OffloadFinished{id, good});
  offload->lock.release();
}

void OffloadQueue::fail_dependents(OffloadId failed) {
  for (const auto& later : offloads_) later->doomed |= later->depends_on == failed;
}

void OffloadQueue::set_flags(const Offload& offload) {
  Node* end = endpoint(offload);
  if (end == nullptr) return;
  for (const Transfer& transfer : offload.transfers) {
    if (transfer.component == Component::mamba) {
      flag_state(rank_, *end);
      continue;
    }
    for (Node* node : nodes_of_run(*end, offload.run.begin)) {
      if (transfer.component == Component::full) flag_full(rank_, *node);
      if (transfer.component == Component::swa) flag_swa(rank_, *node, transfer.pages);
    }
  }
}

void OffloadQueue::clear_marks(const Offload& offload) {
  Node* end = endpoint(offload);
  if (end == nullptr) return;
  for (const Transfer& transfer : offload.transfers) {
    if (transfer.component == Component::mamba) end->state_pending = false;
    for (Node* node : nodes_of_run(*end, offload.run.begin)) {
      if (transfer.component == Component::full) node->full_pending.reset();
      if (transfer.component != Component::swa) continue;
      for (Pages page = std::max(transfer.pages.begin, node->begin);
           page < std::min(transfer.pages.end, node->end()); ++page) {
        node->swa_pending[node->offset(page)] = 0;
      }
    }
  }
}

void OffloadQueue::for_each(const std::function<void(const Transfer&)>& visit) const {
  for (const auto& offload : offloads_) {
    for (const Transfer& transfer : offload->transfers) visit(transfer);
  }
}

void OffloadPhase::walk(RequestId request, Node& node) {
  for (Node* n : chain(node)) {
    std::vector<Transfer> transfers = missing(*n);
    if (transfers.empty()) continue;
    const std::optional<OffloadId> parent =
        n->parent->is_root() ? std::nullopt : n->parent->full_pending;
    const OffloadId id = queue_.next_id();
    mark_pending(*n, transfers, id);
    queue_.queue(id, *n, std::move(transfers), parent);
  }
  rank_.emit(request, OffloadWalked{node.id});
}

std::vector<Node*> OffloadPhase::chain(Node& node) const {
  std::vector<Node*> nodes;
  for (Node* n = &node; !n->is_root(); n = n->parent) {
    const bool known = n->full_stored || n->full_pending.has_value();
    if (rank_.config.reoffload == ReoffloadPolicy::never && known) break;
    nodes.push_back(n);
  }
  std::ranges::reverse(nodes);
  const auto held = std::ranges::find_if(nodes, [&](const Node* n) { return !may_put(*n); });
  nodes.erase(held, nodes.end());
  return nodes;
}

std::vector<Transfer> OffloadPhase::missing(const Node& node) const {
  std::vector<Transfer> transfers;
  const PageRange run{node.begin, node.end()};
  if (!node.full_stored && !node.full_pending) {
    transfers.push_back(planner_.pages(Component::full, node.hashes, run, node.full));
  }
  for (std::size_t i = 0; i < node.swa.size(); ++i) {
    if (node.swa[i] == kTrapRow || node.swa_stored[i] != 0 || node.swa_pending[i] != 0) continue;
    const Pages page = node.begin + Pages{static_cast<std::int64_t>(i)};
    const bool extends = !transfers.empty() && transfers.back().component == Component::swa &&
                         transfers.back().pages.end == page;
    if (!extends) {
      transfers.push_back(planner_.pages(Component::swa, {}, {page, page}, {}));
    }
    Transfer& transfer = transfers.back();
    transfer.rows.push_back(node.swa[i]);
    transfer.hashes.push_back(node.hashes[i]);
    ++transfer.pages.end;
  }
  if (node.has_state() && !node.state_stored && !node.state_pending) {
    transfers.push_back(planner_.state(node.hashes, node.end(), node.state));
  }
  return transfers;
}

void OffloadPhase::mark_pending(Node& node, const std::vector<Transfer>& transfers, OffloadId id) {
  for (const Transfer& transfer : transfers) {
    if (transfer.component == Component::full) node.full_pending = id;
    if (transfer.component == Component::mamba) node.state_pending = true;
    if (transfer.component != Component::swa) continue;
    for (Pages page = transfer.pages.begin; page < transfer.pages.end; ++page) {
      node.swa_pending[node.offset(page)] = 1;
    }
  }
}

}  // namespace lockstep
