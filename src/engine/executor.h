// Turns one rank's part of a forward into operations on its compute stream: embedding, the layers
// in order, the head. In front of each layer the cache orders what must come first (waits for
// loads, the copy into Q).
//
// Where ranks share the heads of the model, a layer is two operations, and events across the ranks
// order the second behind the first of all of them:
//
//   rank 0   | heads of layer l |   | combine |   | heads of layer l+1 |
//                                 X                 the partial sums alternate between two buffers:
//   rank 1   | heads of layer l |   | combine |     nobody writes one that another rank still reads
#pragma once

#include <memory>
#include <span>

#include "device/device.h"
#include "engine/forward.h"
#include "link/cache.h"
#include "model/model.h"
#include "pool/group.h"

namespace lockstep::engine {

class Executor {
 public:
  // All outlive the executor.
  Executor(const model::Model& model, Device& device, PoolGroup& pools, Tokens page);
  virtual ~Executor() = default;

  // A forward is begin(), the layers in order, end(); all only enqueue.
  virtual void begin(const std::shared_ptr<Forward>& forward, std::size_t rank);
  // A layer of the whole model.
  virtual void run_layer(const std::shared_ptr<Forward>& forward, std::size_t rank, LayerId layer,
                         Cache& cache);
  // The heads of a shard; then, behind the events of all ranks, the rest of the layer.
  DeviceEvent run_heads(const std::shared_ptr<Forward>& forward, std::size_t rank, LayerId layer,
                        Cache& cache);
  virtual void combine_heads(const std::shared_ptr<Forward>& forward, std::size_t rank,
                             LayerId layer, std::span<const DeviceEvent> heads);
  // Records the event behind the forward. The forward does not own it: what waits for it owns the
  // forward.
  virtual DeviceEvent end(const std::shared_ptr<Forward>& forward, std::size_t rank);
  bool has_shard() const { return model_.shard().count > 1; }

 protected:
  const model::Model& model_;
  Device& device_;
  PoolGroup& pools_;

 private:
  // Of all segments on that rank: what must come before the layer.
  void before_layer(const Forward& forward, LayerId layer, Cache& cache);
  // `passes`: how often the activations are read or written.
  Op op_on_activations(std::string_view name, const Forward& forward, std::int64_t passes) const;
  void report_pages(const Forward& forward, std::size_t rank, LayerId layer,
                    const AccessSink& sink) const;
  void report_slots(const Forward& forward, std::size_t rank, LayerId layer,
                    const AccessSink& sink) const;
  void report_kv(const RowLayout& layout, const std::vector<Row>& table,
                 const PlannedSegment& planned, LayerId layer, const AccessSink& sink) const;
  // Memory of one segment for one forward.
  void take_memory(const PlannedSegment& planned, RankSegment& local);
  // The token that a forward in front of this one has generated on the device.
  void fetch_input(RankSegment& local, std::size_t rank) const;
  // Device memory with that output.
  std::span<const std::byte> input_on_device(const RankSegment& local, std::size_t rank) const;
  // Of a model on a device: outputs into the host's memory, behind the head.
  void copy_outputs(const Forward& forward, std::size_t rank);
  model::Segment segment(const PlannedSegment& planned, const RankSegment& local) const;
  // Whether bodies work on the host's memory themselves, or launch kernels that do.
  bool on_host() const { return device_.accelerator().shares_host_memory(); }

  Geometry geometry_;
  model::Memory memory_;
};

}  // namespace lockstep::engine
