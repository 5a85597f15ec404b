#include "link/cow.h"

#include <algorithm>

namespace lockstep {

void CowPhase::before_layer(RequestState& request, LayerId layer, std::span<const LoadId> loads,
                            const std::function<void(std::span<std::byte>)>& clear) {
  if (!rank_.has(Component::mamba)) return;
  const RowLayout& layout = rank_.pools.pool(Component::mamba).layout();
  std::vector<LayerId> held = layout.layers();
  std::ranges::sort(held);
  if (request.clear_pending && layer == held.front()) {
    clear_slot(request, clear);
    request.clear_pending = false;
  }
  if (!request.pending_copy || request.pending_copy->enqueued) return;

  if (barrier()) {
    // The whole row at once, in front of the first recurrent layer, behind the last layer of the
    // load.
    if (layer != held.front()) return;
    for (LayerId each : held) wait_for_source(request, each, loads);
    copy(request, layout.parts, true);
    enqueued(request);
    return;
  }
  std::vector<LayerPart> parts;
  for (const LayerPart& part : layout.parts) {
    if (part.layer == layer) parts.push_back(part);
  }
  if (parts.empty()) return;
  wait_for_source(request, layer, loads);
  copy(request, parts, layer == held.back());
  if (layer == held.back()) enqueued(request);
}

void CowPhase::enqueued(RequestState& request) {
  request.pending_copy->enqueued = true;
}

void CowPhase::done(RequestState& request) {
  request.pending_copy.reset();
}

void CowPhase::wait_for_source(const RequestState&, LayerId layer, std::span<const LoadId> loads) {
  loads_.wait_for_layer(StreamKind::compute, layer, loads);
}

void CowPhase::copy(const RequestState& request, std::span<const LayerPart> parts, bool last) {
  const Row source = request.pending_copy->source;
  const Row q = request.q.row();
  RowPool& pool = rank_.pools.pool(Component::mamba);
  Op op{.name = "cow.copy", .link = Link::device_memory};
  for (const LayerPart& part : parts) {
    op.copies.add(pool.bytes(q).subspan(part.offset.index(), part.size.index()),
                  pool.bytes(source).subspan(part.offset.index(), part.size.index()));
  }
  op.bytes = op.copies.size() * 2;  // read and written in the same memory
  if (last) {
    op.report = [&rank = rank_, source, q, id = request.id, commit = request.commit] {
      rank.emit(id, CopyExecuted{source, q, commit});
    };
  }
  op.accesses = [source, q, moved = std::vector<LayerPart>(parts.begin(), parts.end())](
                    const AccessSink& sink) {
    for (const LayerPart& part : moved) {
      sink({Component::mamba, source, part.layer, part.part, AccessMode::read});
      sink({Component::mamba, q, part.layer, part.part, AccessMode::write});
    }
  };
  rank_.device.enqueue(StreamKind::compute, std::move(op));
}

void CowPhase::clear_slot(const RequestState& request,
                          const std::function<void(std::span<std::byte>)>& clear) {
  const Row q = request.q.row();
  RowPool& pool = rank_.pools.pool(Component::mamba);
  Op op{"cow.clear", Link::device_memory, pool.layout().row_bytes, {}, {}};
  op.body = [&pool, q, clear] { clear(pool.bytes(q)); };
  op.report = [&rank = rank_, q, id = request.id, commit = request.commit] {
    rank.emit(id, SlotCleared{q, commit});
  };
  op.accesses = [q, &pool](const AccessSink& sink) {
    for (const LayerPart& part : pool.layout().parts) {
      sink({Component::mamba, q, part.layer, part.part, AccessMode::write});
    }
  };
  rank_.device.enqueue(StreamKind::compute, std::move(op));
}

}  // namespace lockstep
