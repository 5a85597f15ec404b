// The cache's sizes and policies, as a scenario's "cache" object names them (interfaces.md).
// Defaults belong to scenario version 1 and never change within it.
#pragma once

#include "core/geometry.h"
#include "core/ids.h"

namespace lockstep {

enum class CheckpointPolicy { chunk_end, every };
enum class PublishPolicy { at_commit, after_load };
enum class OverlapPolicy { barrier, per_layer };
enum class ReoffloadPolicy { never, per_component };
enum class ObjectOrder { ascending, descending };

struct CacheConfig {
  Tokens page{128};
  Tokens track_interval{128};
  Tokens prefill_chunk{2048};  // most prompt tokens of one forward, over all its requests
  Rows full_pages{96};
  Rows swa_pages{96};
  Rows mamba_slots{24};
  std::int64_t max_running = 1;
  std::int64_t ahead = 0;
  CheckpointPolicy checkpoints = CheckpointPolicy::chunk_end;
  PublishPolicy publish = PublishPolicy::at_commit;
  OverlapPolicy overlap = OverlapPolicy::per_layer;
  ReoffloadPolicy reoffload = ReoffloadPolicy::per_component;
  ObjectOrder object_order = ObjectOrder::ascending;
  bool operator==(const CacheConfig&) const = default;
};

}  // namespace lockstep
