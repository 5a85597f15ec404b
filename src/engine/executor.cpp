#include "engine/executor.h"

#include <algorithm>

namespace lockstep::engine {

namespace {

std::int64_t token_count(const Forward& forward) {
  std::int64_t tokens = 0;
  for (const PlannedSegment& segment : forward.segments) {
    tokens += segment.count.value();
  }
  return tokens;
}

}  // namespace

Executor::Executor(const model::Model& model, Device& device, PoolGroup& pools, Tokens page)
    : model_(model), device_(device), pools_(pools), geometry_(model.geometry()) {
  geometry_.page = page;
  memory_.page = page;
  for (Component component : kComponents) {
    if (!pools.has(component)) continue;
    RowPool& pool = pools.pool(component);
    memory_.components[index(component)] = {pool.base(), &pool.layout()};
  }
}

model::Segment Executor::segment(const PlannedSegment& planned, const RankSegment& local) const {
  return {planned.extra_key, planned.start, local.tokens,   local.full,
          local.swa,         local.q,       local.snapshots};
}

DeviceEvent Executor::launch(const std::shared_ptr<Forward>& forward, std::size_t rank,
                             Cache& cache) {
  const std::int64_t tokens = token_count(*forward);
  const Bytes activations{tokens * model_.activation_bytes().value()};
  device_.enqueue(StreamKind::compute,
                  {"forward.embed",
                   Link::device_memory,
                   activations,
                   [this, forward, rank] {
                     for (std::size_t i = 0; i < forward->segments.size(); ++i) {
                       RankSegment& local = forward->ranks[rank].segments[i];
                       fetch_input(local, rank);
                       model_.embed(segment(forward->segments[i], local), local.activations);
                     }
                   },
                   {}});
  const auto clear = [this](std::span<std::byte> slot) { model_.clear_slot(slot); };
  for (std::size_t l = 0; l < model_.layers().size(); ++l) {
    const LayerId layer{static_cast<std::uint32_t>(l)};
    for (const PlannedSegment& planned : forward->segments) {
      cache.before_layer(planned.request, layer, clear);
    }
    enqueue_layer(forward, rank, layer);
  }
  device_.enqueue(StreamKind::compute, {"forward.head",
                                        Link::device_memory,
                                        activations,
                                        [this, forward, rank] {
                                          for (std::size_t i = 0; i < forward->segments.size();
                                               ++i) {
                                            RankSegment& local = forward->ranks[rank].segments[i];
                                            model_.head(segment(forward->segments[i], local),
                                                        local.activations, local.outputs);
                                          }
                                        },
                                        {}});
  DeviceEvent done;
  device_.record(StreamKind::compute, done);
  return done;
}

void Executor::fetch_input(RankSegment& local, std::size_t rank) const {
  if (!local.input) return;
  const DeviceInput& input = *local.input;
  const std::span<const std::byte> outputs =
      input.forward->ranks[rank].segments[input.segment].outputs;
  local.tokens.back() = model_.next_token(outputs.last(model_.output_bytes().index()));
  local.input.reset();
}

void Executor::enqueue_layer(const std::shared_ptr<Forward>& forward, std::size_t rank,
                             LayerId layer) {
  const Bytes bytes{2 * token_count(*forward) * model_.activation_bytes().value()};
  Op op{"forward.layer", Link::device_memory, bytes, {}, {}};
  op.body = [this, forward, rank, layer] {
    for (std::size_t i = 0; i < forward->segments.size(); ++i) {
      RankSegment& local = forward->ranks[rank].segments[i];
      model_.run_layer(layer, segment(forward->segments[i], local), memory_, local.activations);
    }
  };
  op.accesses = [this, forward, rank, layer](const AccessSink& sink) {
    report_accesses(*forward, rank, layer, sink);
  };
  device_.enqueue(StreamKind::compute, std::move(op));
}

void Executor::report_accesses(const Forward& forward, std::size_t rank, LayerId layer,
                               const AccessSink& sink) const {
  for (std::size_t i = 0; i < forward.segments.size(); ++i) {
    const PlannedSegment& planned = forward.segments[i];
    const RankSegment& local = forward.ranks[rank].segments[i];
    const model::LayerShape& shape = model_.layers()[layer.index()];
    if (shape.attention == model::Attention::full) {
      report_kv(pools_.pool(Component::full).layout(), local.full, planned, layer, sink);
    }
    if (shape.attention == model::Attention::swa) {
      report_kv(pools_.pool(Component::swa).layout(), local.swa, planned, layer, sink);
    }
    if (!shape.recurrent) continue;
    for (const LayerPart& part : pools_.pool(Component::mamba).layout().parts) {
      if (part.layer != layer) continue;
      sink({Component::mamba, local.q, layer, part.part, AccessMode::read});
      sink({Component::mamba, local.q, layer, part.part, AccessMode::write});
      for (const SnapshotView& snapshot : local.snapshots) {
        sink({Component::mamba, snapshot.slot, layer, part.part, AccessMode::write});
      }
    }
  }
}

void Executor::report_kv(const RowLayout& layout, const std::vector<Row>& table,
                         const PlannedSegment& planned, LayerId layer,
                         const AccessSink& sink) const {
  Pages first{0};
  if (layout.component == Component::swa) {
    const Tokens oldest = planned.start - (geometry_.window - Tokens{1});
    first = geometry_.pages(std::max(Tokens{0}, oldest));
  }
  const Pages written = geometry_.pages(planned.start);
  for (Pages page = first; page < geometry_.pages_touched(planned.end()); ++page) {
    const Row row = table[page.index()];
    sink({layout.component, row, layer, Part::kv, AccessMode::read});
    if (page >= written) sink({layout.component, row, layer, Part::kv, AccessMode::write});
  }
}

}  // namespace lockstep::engine
