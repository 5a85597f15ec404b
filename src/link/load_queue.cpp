#include "link/load_queue.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "link/stored_flags.h"

namespace lockstep {

namespace {

constexpr std::size_t kDigestBytes = sizeof(std::uint64_t);

std::size_t object_bytes(const RowLayout& layout) {
  return layout.row_bytes.index() + layout.layers().size() * kDigestBytes;
}

// Where one layer lies in the store objects of a pool.
struct LayerInObject {
  LayerPart range;     // of the payload
  std::size_t digest;  // offset of the layer's digest
  std::size_t stride;  // bytes of one object
};

// Nothing if the pool does not hold the layer.
std::optional<LayerInObject> locate(const RowLayout& layout, LayerId layer) {
  const std::vector<LayerId> layers = layout.layers();
  const auto found = std::ranges::find(layers, layer);
  if (found == layers.end()) return std::nullopt;
  const auto position = static_cast<std::size_t>(found - layers.begin());
  return LayerInObject{layout.range_of(layer), layout.row_bytes.index() + position * kDigestBytes,
                       object_bytes(layout)};
}

}  // namespace

std::vector<std::byte> row_digests(const RowLayout& layout, std::span<const std::byte> row) {
  std::vector<std::byte> digests;
  for (LayerId layer : layout.layers()) {
    const LayerPart range = layout.range_of(layer);
    const std::uint64_t digest = xxh3(row.subspan(range.offset.index(), range.size.index()));
    const auto bytes = std::as_bytes(std::span(&digest, 1));
    digests.insert(digests.end(), bytes.begin(), bytes.end());
  }
  return digests;
}

LoadQueue::~LoadQueue() {
  for (const auto& load : loads_) {
    load->endpoint.release();
    if (load->abandoned) load->abandoned->disown();
  }
}

void LoadQueue::queue(LoadId id, RequestId request, Pages begin, Tokens boundary,
                      std::vector<Transfer> transfers, LockTicket endpoint) {
  auto load = std::make_shared<Load>();
  load->id = id;
  load->request = request;
  load->begin = begin;
  load->transfers = std::move(transfers);
  load->endpoint = std::move(endpoint);
  std::vector<TransferView> views;
  for (const Transfer& transfer : load->transfers) views.push_back(transfer.view());
  rank_.emit(request, LoadQueued{id, boundary, views});
  loads_.push_back(std::move(load));
}

void LoadQueue::start_batch() {
  std::vector<std::shared_ptr<Load>> waiting;
  std::ranges::copy_if(loads_, std::back_inserter(waiting),
                       [](const auto& load) { return load->batch == nullptr; });
  if (waiting.empty()) return;

  auto batch = std::make_shared<Batch>();
  std::set<LayerId> layers;
  for (Component component : kComponents) {
    if (!rank_.has(component)) continue;
    const std::vector<LayerId> held = rank_.pools.pool(component).layout().layers();
    layers.insert(held.begin(), held.end());
  }
  batch->layers.assign(layers.begin(), layers.end());
  batch->events.resize(batch->layers.size());
  batch->loads = waiting.size();
  batch->open.assign(batch->layers.size(), batch->loads);

  rank_.device.record(StreamKind::compute, batch->readers);
  for (const auto& load : waiting) start(load, batch);
}

void LoadQueue::order_behind_readers(const Batch& batch) {
  rank_.device.wait(StreamKind::load, batch.readers);
}

void LoadQueue::start(const std::shared_ptr<Load>& load, const std::shared_ptr<Batch>& batch) {
  load->batch = batch;
  load->reads.resize(batch->layers.size());
  for (const Transfer& transfer : load->transfers) {
    const RowLayout& layout = rank_.pools.pool(transfer.component).layout();
    const std::size_t size = object_bytes(layout) * transfer.rows.size();
    load->staging.push_back(
        rank_.device.accelerator().staging(Bytes{static_cast<std::int64_t>(size)}));
  }
  rank_.emit(load->request, LoadStarted{load->id});
  for (std::size_t i = 0; i < batch->layers.size(); ++i) {
    load->reads[i].ticket = rank_.store.get(items(*load, batch->layers[i]));
  }
}

std::vector<GetItem> LoadQueue::items(Load& load, LayerId layer) const {
  std::vector<GetItem> items;
  for (std::size_t t = 0; t < load.transfers.size(); ++t) {
    const Transfer& transfer = load.transfers[t];
    const auto place = locate(rank_.pools.pool(transfer.component).layout(), layer);
    if (!place) continue;
    const LayerPart& range = place->range;
    const Bytes digest{static_cast<std::int64_t>(place->digest)};
    const std::span<std::byte> staging = load.staging[t].get();
    for (std::size_t i = 0; i < transfer.rows.size(); ++i) {
      const ObjectKey key = rank_.keys.object_key(transfer.hashes[i], transfer.component);
      const auto object = staging.subspan(i * place->stride, place->stride);
      ItemNote note{rank_.id, load.request, transfer.component, layer,
                    transfer.pages.begin + Pages{static_cast<std::int64_t>(i)}};
      items.push_back(
          {key, range.offset, object.subspan(range.offset.index(), range.size.index()), note});
      note.payload = false;
      items.push_back({key, digest, object.subspan(place->digest, kDigestBytes), note});
    }
  }
  return items;
}

void LoadQueue::pump() {
  // A copy may finish a load, but only settle() takes it out: the list does not change here.
  const Batch* unfinished = nullptr;
  for (const auto& load : loads_) {
    if (unfinished != nullptr && load->batch.get() != unfinished) return;
    for (std::size_t i = 0; i < load->reads.size(); ++i) {
      LayerRead& read = load->reads[i];
      if (read.over) continue;
      const auto results = rank_.store.poll(read.ticket);
      if (!results) {
        unfinished = load->batch.get();
        continue;
      }
      read.over = true;
      arrived(load, i, *results);
    }
  }
}

void LoadQueue::arrived(const std::shared_ptr<Load>& load, std::size_t layer,
                        const std::vector<StoreResult>& results) {
  if (accept(*load, load->batch->layers[layer], results)) {
    copy_layer(load, layer);
  } else {
    load->failed = true;
    ++load->layers_over;
  }
  --load->batch->open[layer];
  signal(*load->batch, layer);
}

bool LoadQueue::accept(const Load& load, LayerId layer,
                       const std::vector<StoreResult>& results) const {
  const bool complete = std::ranges::all_of(
      results, [](const StoreResult& result) { return result.status == StoreStatus::ok; });
  return complete && digests_match(load, layer);
}

bool LoadQueue::digests_match(const Load& load, LayerId layer) const {
  for (std::size_t t = 0; t < load.transfers.size(); ++t) {
    const auto place = locate(rank_.pools.pool(load.transfers[t].component).layout(), layer);
    if (!place) continue;
    const LayerPart& range = place->range;
    const std::span<const std::byte> staging = load.staging[t].get();
    for (std::size_t i = 0; i < load.transfers[t].rows.size(); ++i) {
      const auto object = staging.subspan(i * place->stride, place->stride);
      std::uint64_t digest = 0;
      std::memcpy(&digest, object.data() + place->digest, kDigestBytes);
      if (digest != xxh3(object.subspan(range.offset.index(), range.size.index()))) return false;
    }
  }
  return true;
}

void LoadQueue::copy_layer(const std::shared_ptr<Load>& load, std::size_t layer_position) {
  const LayerId layer = load->batch->layers[layer_position];
  Op op{.name = "load.layer", .link = Link::host_link};
  PoolGroup& pools = rank_.pools;
  for (std::size_t t = 0; t < load->transfers.size(); ++t) {
    const Transfer& transfer = load->transfers[t];
    RowPool& pool = pools.pool(transfer.component);
    const LayerPart range = pool.layout().range_of(layer);
    const std::size_t stride = object_bytes(pool.layout());
    for (std::size_t i = 0; i < transfer.rows.size() && range.size > Bytes{0}; ++i) {
      const auto object = load->staging[t].get().subspan(i * stride, stride);
      op.copies.add(pool.bytes(transfer.rows[i]).subspan(range.offset.index(), range.size.index()),
                    object.subspan(range.offset.index(), range.size.index()));
    }
  }
  op.bytes = op.copies.size();
  op.accesses = [load, layer, &pools](const AccessSink& sink) {
    for (const Transfer& transfer : load->transfers) {
      for (const LayerPart& part : pools.pool(transfer.component).layout().parts) {
        if (part.layer != layer) continue;
        for (Row row : transfer.rows) {
          sink({transfer.component, row, layer, part.part, AccessMode::write});
        }
      }
    }
  };
  order_behind_readers(*load->batch);
  rank_.device.enqueue(StreamKind::load, std::move(op));
  DeviceEvent landed;
  rank_.device.record(StreamKind::load, landed);
  rank_.device.on_reached(landed, [&rank = rank_, load, layer] {
    ++load->layers_over;
    rank.emit(load->request, LayerLanded{load->id, layer});
  });
}

void LoadQueue::signal(Batch& batch, std::size_t layer) {
  if (batch.open[layer] == 0) rank_.device.record(StreamKind::load, batch.events[layer]);
}

std::optional<FinishedLoad> LoadQueue::oldest_finished() const {
  if (loads_.empty() || !loads_.front()->over()) return std::nullopt;
  // The roll-back of another load may have taken the rows that this one filled.
  const Load& oldest = *loads_.front();
  const bool torn = oldest.endpoint.open() && oldest.endpoint.node().detached;
  return FinishedLoad{oldest.id, oldest.request, !oldest.failed && !torn};
}

Node& LoadQueue::oldest_endpoint() const {
  CHECK("load.oldest", !loads_.empty());
  return loads_.front()->endpoint.node();
}

std::span<const Transfer> LoadQueue::oldest_transfers() const {
  CHECK("load.oldest", !loads_.empty());
  return loads_.front()->transfers;
}

void LoadQueue::abandon(LoadId id, LoadRows rows) {
  const auto load = std::ranges::find(loads_, id, [](const auto& each) { return each->id; });
  CHECK("load.abandon.under_way", load != loads_.end());
  (*load)->abandoned = std::move(rows);
}

std::optional<LoadId> LoadQueue::oldest() const {
  return loads_.empty() ? std::nullopt : std::optional(loads_.front()->id);
}

void LoadQueue::settle(LoadId id, bool good) {
  CHECK("load.settle.order", !loads_.empty() && loads_.front()->id == id);
  const std::shared_ptr<Load> load = loads_.front();
  loads_.pop_front();
  if (load->endpoint.open()) rank_.tree.loaded(load->endpoint.node(), id);
  rank_.emit(load->request, LoadFinished{id, good});
  if (!load->endpoint.open()) return load->abandoned.reset();
  if (good) flag_proved(rank_, load->endpoint.node(), load->begin);
  load->endpoint.release();
}

void LoadQueue::wait_for_layer(StreamKind stream, LayerId layer, std::span<const LoadId> loads) {
  for (const auto& load : loads_) {
    if (std::ranges::find(loads, load->id) == loads.end()) continue;
    CHECK("load.wait.started", load->batch != nullptr);
    const auto position = std::ranges::lower_bound(load->batch->layers, layer);
    if (position == load->batch->layers.end() || *position != layer) continue;
    const auto index = static_cast<std::size_t>(position - load->batch->layers.begin());
    rank_.device.wait(stream, load->batch->events[index]);
  }
}

void LoadQueue::for_each(const std::function<void(const Transfer&, bool owned)>& visit) const {
  for (const auto& load : loads_) {
    for (const Transfer& transfer : load->transfers) visit(transfer, load->abandoned.has_value());
  }
}

}  // namespace lockstep
