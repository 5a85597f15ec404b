#include "engine/executor.h"

#include <algorithm>

#include "model/device_segment.h"

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
  model::Segment segment{planned.extra_key, planned.start, local.tokens, local.full,
                         local.swa,         local.q,       local.states};
  segment.uploaded = local.uploaded.get();
  return segment;
}

void Executor::begin(const std::shared_ptr<Forward>& forward, std::size_t rank) {
  for (std::size_t i = 0; i < forward->segments.size(); ++i) {
    take_memory(forward->segments[i], forward->ranks[rank].segments[i]);
  }
  Op op = op_on_activations("forward.embed", *forward, 1);
  op.body = [this, forward, rank] {
    for (std::size_t i = 0; i < forward->segments.size(); ++i) {
      RankSegment& local = forward->ranks[rank].segments[i];
      model::Segment own = segment(forward->segments[i], local);
      if (on_host()) {
        fetch_input(local, rank);
      } else {
        own.input = input_on_device(local, rank);
      }
      model_.embed(own, local.activations.get());
    }
  };
  device_.enqueue(StreamKind::compute, std::move(op));
}

DeviceEvent Executor::end(const std::shared_ptr<Forward>& forward, std::size_t rank) {
  Op op = op_on_activations("forward.head", *forward, 1);
  op.body = [this, forward, rank] {
    for (std::size_t i = 0; i < forward->segments.size(); ++i) {
      RankSegment& local = forward->ranks[rank].segments[i];
      const std::span<std::byte> outputs =
          on_host() ? local.outputs.get() : local.device_outputs.get();
      model_.head(segment(forward->segments[i], local), local.activations.get(), outputs);
    }
    if (!on_host()) copy_outputs(*forward, rank);
  };
  device_.enqueue(StreamKind::compute, std::move(op));
  DeviceEvent done;
  device_.record(StreamKind::compute, done);
  if (!on_host()) {
    // The host learns the token that the device fed when it has its output, in front of everybody
    // else who waits for the forward.
    device_.on_reached(done, [this, forward, rank] {
      for (RankSegment& local : forward->ranks[rank].segments) fetch_input(local, rank);
    });
  }
  return done;
}

void Executor::take_memory(const PlannedSegment& planned, RankSegment& local) {
  Accelerator& accelerator = device_.accelerator();
  const std::int64_t tokens = planned.count.value();
  local.activations = accelerator.scratch(model_.activation_bytes() * tokens);
  local.outputs = accelerator.staging(model_.output_bytes() * tokens);
  if (has_shard()) {
    for (OwnedBytes& partial : local.partials) {
      partial = accelerator.scratch(model_.partial_bytes() * tokens);
    }
  }
  if (on_host()) return;
  local.device_outputs = accelerator.scratch(model_.output_bytes() * tokens);
  local.uploaded = accelerator.scratch(model::device_segment_bytes(segment(planned, local)));
}

std::span<const std::byte> Executor::input_on_device(const RankSegment& local,
                                                     std::size_t rank) const {
  if (!local.input) return {};
  const RankSegment& source = local.input->forward->ranks[rank].segments[local.input->segment];
  return source.device_outputs.get().last(model_.output_bytes().index());
}

void Executor::copy_outputs(const Forward& forward, std::size_t rank) {
  CopyList copies;
  for (const RankSegment& local : forward.ranks[rank].segments) {
    copies.add(local.outputs.get(), local.device_outputs.get());
  }
  device_.accelerator().copy(StreamKind::compute, copies, 0, 1);
}

void Executor::fetch_input(RankSegment& local, std::size_t rank) const {
  if (!local.input) return;
  const DeviceInput& input = *local.input;
  const std::span<const std::byte> outputs =
      input.forward->ranks[rank].segments[input.segment].outputs.get();
  local.tokens.back() = model_.next_token(outputs.last(model_.output_bytes().index()));
  local.input.reset();
}

Op Executor::op_on_activations(std::string_view name, const Forward& forward,
                               std::int64_t passes) const {
  Op op;
  op.name = name;
  op.bytes = model_.activation_bytes() * (passes * token_count(forward));
  return op;
}

void Executor::before_layer(const Forward& forward, LayerId layer, Cache& cache) {
  const auto clear = [this](std::span<std::byte> slot) { model_.clear_slot(slot); };
  for (const PlannedSegment& planned : forward.segments) {
    cache.before_layer(planned.request, layer, clear);
  }
}

void Executor::run_layer(const std::shared_ptr<Forward>& forward, std::size_t rank, LayerId layer,
                         Cache& cache) {
  before_layer(*forward, layer, cache);
  Op op = op_on_activations("forward.layer", *forward, 2);
  op.body = [this, forward, rank, layer] {
    for (std::size_t i = 0; i < forward->segments.size(); ++i) {
      RankSegment& local = forward->ranks[rank].segments[i];
      model_.run_layer(layer, segment(forward->segments[i], local), memory_,
                       local.activations.get());
    }
  };
  op.accesses = [this, forward, rank, layer](const AccessSink& sink) {
    report_pages(*forward, rank, layer, sink);
    report_slots(*forward, rank, layer, sink);
  };
  device_.enqueue(StreamKind::compute, std::move(op));
}

DeviceEvent Executor::run_heads(const std::shared_ptr<Forward>& forward, std::size_t rank,
                                LayerId layer, Cache& cache) {
  before_layer(*forward, layer, cache);
  Op op = op_on_activations("forward.heads", *forward, 2);
  op.body = [this, forward, rank, layer] {
    for (std::size_t i = 0; i < forward->segments.size(); ++i) {
      RankSegment& local = forward->ranks[rank].segments[i];
      model_.run_heads(layer, segment(forward->segments[i], local), memory_,
                       local.activations.get(), local.partial(layer));
    }
  };
  op.accesses = [this, forward, rank, layer](const AccessSink& sink) {
    report_pages(*forward, rank, layer, sink);
    report_slots(*forward, rank, layer, sink);
  };
  device_.enqueue(StreamKind::compute, std::move(op));
  DeviceEvent done;
  device_.record(StreamKind::compute, done);
  return done;
}

void Executor::combine_heads(const std::shared_ptr<Forward>& forward, std::size_t rank,
                             LayerId layer, std::span<const DeviceEvent> heads) {
  for (std::size_t other = 0; other < heads.size(); ++other) {
    if (other != rank) device_.wait(StreamKind::compute, heads[other]);
  }
  Op op = op_on_activations("forward.combine", *forward, 2);
  op.body = [this, forward, rank, layer] {
    for (std::size_t i = 0; i < forward->segments.size(); ++i) {
      std::vector<std::span<const std::byte>> partials;
      for (RankForward& other : forward->ranks) {
        partials.push_back(other.segments[i].partial(layer));
      }
      RankSegment& local = forward->ranks[rank].segments[i];
      model_.combine_heads(layer, segment(forward->segments[i], local), memory_, partials,
                           local.activations.get());
    }
  };
  op.accesses = [this, forward, rank, layer](const AccessSink& sink) {
    report_slots(*forward, rank, layer, sink);
  };
  device_.enqueue(StreamKind::compute, std::move(op));
}

void Executor::report_pages(const Forward& forward, std::size_t rank, LayerId layer,
                            const AccessSink& sink) const {
  const model::Attention attention = model_.layers()[layer.index()].attention;
  if (attention == model::Attention::none) return;
  const bool full = attention == model::Attention::full;
  const RowLayout& layout = pools_.pool(full ? Component::full : Component::swa).layout();
  for (std::size_t i = 0; i < forward.segments.size(); ++i) {
    const RankSegment& local = forward.ranks[rank].segments[i];
    report_kv(layout, full ? local.full : local.swa, forward.segments[i], layer, sink);
  }
}

void Executor::report_slots(const Forward& forward, std::size_t rank, LayerId layer,
                            const AccessSink& sink) const {
  if (!model_.layers()[layer.index()].recurrent) return;
  for (const RankSegment& local : forward.ranks[rank].segments) {
    for (const LayerPart& part : pools_.pool(Component::mamba).layout().parts) {
      if (part.layer != layer) continue;
      sink({Component::mamba, local.q, layer, part.part, AccessMode::read});
      sink({Component::mamba, local.q, layer, part.part, AccessMode::write});
      for (const SnapshotView& snapshot : local.states) {
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
