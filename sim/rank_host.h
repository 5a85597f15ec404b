// One rank of a world: accelerator, device, pools, linker and executor, built in this order and
// ended in reverse. The accelerator comes from outside: the rank's model lives on it, too.
#pragma once

#include <memory>
#include <string>

#include "core/cache_config.h"
#include "core/clock.h"
#include "core/result.h"
#include "device/free_running.h"
#include "device/stepped.h"
#include "engine/engine.h"
#include "engine/parts.h"
#include "link/linker.h"
#include "model/model.h"
#include "pool/group.h"
#include "sim/access_check.h"
#include "sim/race_detector.h"
#include "sim/stream_schedule.h"
#include "sim/watch.h"
#include "store/store.h"

namespace lockstep::sim {

struct RankHostConfig {
  RankId rank;
  std::uint32_t ranks = 1;
  Geometry geometry;
  CacheConfig cache;
  std::uint64_t seed = 1;
  ScheduleSpec schedule;
  Watch watch = Watch::races;
  bool free_running = false;
};

// What a rank's device found.
struct RankReports {
  RaceDetector::Report race;
  AccessCheck::Report undeclared_write;
};

// The pools that `model` needs under `cache`, checked against what the model declares (semantics
// 8).
Result<std::vector<PoolSpec>> plan_pools(const model::Model& model, const model::ModelSpec& spec,
                                         const CacheConfig& cache);

// Names everything about the rows' bytes that another layout could differ in.
std::string layout_fingerprint(const std::vector<PoolSpec>& pools);

class RankHost {
 public:
  // Everything passed by reference outlives the host. REQUIRES: `pools` come from plan_pools().
  RankHost(const RankHostConfig& config, const std::vector<PoolSpec>& pools,
           Accelerator& accelerator, const model::Model& model, const engine::Parts& parts,
           Timers& timers, Store& store, EventSink& sink, AllocationGate* gate,
           RankReports reports);

  Cache& cache() { return *linker_; }
  engine::RankUnit unit() { return {linker_.get(), executor_.get(), device_.get()}; }
  // Of a free-running device: launches what can be, and reaches what has been passed. False:
  // nothing moved.
  bool run_device() { return free_ != nullptr && free_->run(); }
  bool device_is_idle() const { return free_ == nullptr || free_->idle(); }
  Result<void> check_canaries() {
    return stepped_ == nullptr ? Result<void>() : stepped_->check_canaries();
  }

 private:
  SteppedHooks hooks() const;
  std::unique_ptr<Device> make_device(const RankHostConfig& config, Timers& timers,
                                      Accelerator& accelerator);

  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<RaceDetector> races_;
  std::unique_ptr<AccessCheck> accesses_;
  SteppedDevice* stepped_ = nullptr;  // one of them is the device
  FreeRunningDevice* free_ = nullptr;
  std::unique_ptr<Device> device_;
  PoolGroup pools_;
  std::unique_ptr<Linker> linker_;
  std::unique_ptr<engine::Executor> executor_;
};

}  // namespace lockstep::sim
