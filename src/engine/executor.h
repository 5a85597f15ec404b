// Turns one rank's part of a forward into operations on its compute stream: embedding, the layers
// in order, the head. In front of each layer the cache orders what must come first (waits for
// loads, the copy into Q).
#pragma once

#include <memory>

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

  // Enqueues the forward and records the event behind it. The forward does not own the event: what
  // waits for it owns the forward.
  virtual DeviceEvent launch(const std::shared_ptr<Forward>& forward, std::size_t rank,
                             Cache& cache);

 protected:
  virtual void enqueue_layer(const std::shared_ptr<Forward>& forward, std::size_t rank,
                             LayerId layer);

  const model::Model& model_;
  Device& device_;
  PoolGroup& pools_;

 private:
  void report_accesses(const Forward& forward, std::size_t rank, LayerId layer,
                       const AccessSink& sink) const;
  void report_kv(const RowLayout& layout, const std::vector<Row>& table,
                 const PlannedSegment& planned, LayerId layer, const AccessSink& sink) const;
  // The token that a forward in front of this one has generated on the device.
  void fetch_input(RankSegment& local, std::size_t rank) const;
  model::Segment segment(const PlannedSegment& planned, const RankSegment& local) const;

  Geometry geometry_;
  model::Memory memory_;
};

}  // namespace lockstep::engine
