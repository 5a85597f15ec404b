// The pools of one rank, and the start-up checks that refuse what a direct row copy cannot carry
// (semantics 8).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/geometry.h"
#include "core/layout.h"
#include "core/result.h"
#include "pool/row_pool.h"

namespace lockstep {

// One buffer of state that the model says it has: so many bytes per token (kv) or per sequence
// (temporal, conv).
struct DeclaredBuffer {
  Component component = Component::full;
  LayerId layer;
  Part part = Part::kv;
  Bytes bytes;  // per token for kv, per slot otherwise
};

// What a model declares about its cached state. The defaults are what a direct row copy can carry.
struct DeclaredState {
  std::vector<DeclaredBuffer> buffers;
  std::vector<LayerId> attention_layers;
  std::vector<LayerId> full_layers;
  std::vector<LayerId> swa_layers;
  bool kv_scale = false;                      // scaled (quantised) KV with scales beside the rows
  bool virtual_slots = false;                 // unified memory
  std::string state_dtype = "float32";        // of checkpoints; "int8" is refused
  std::vector<std::string> extra_slot_state;  // per-slot state outside the transfer, such as "ple"
  bool contiguous_rows = true;
  Geometry geometry;
};

struct PoolSpec {
  RowLayout layout;
  Tokens page{1};  // tokens per row; 1 for MAMBA
  Rows capacity;
};

// Nothing, or an error that names the pool and the reason. One check per sentence of semantics 8.
Result<void> check_pools(const DeclaredState& state, const std::vector<PoolSpec>& pools);

class PoolGroup {
 public:
  // REQUIRES: check_pools() accepted `pools`.
  PoolGroup(Device& device, EventSink& sink, RankId rank, const std::vector<PoolSpec>& pools);

  bool has(Component component) const { return pools_[index(component)] != nullptr; }
  // REQUIRES: has(component).
  RowPool& pool(Component component);
  const RowPool& pool(Component component) const;

 private:
  std::array<std::unique_ptr<RowPool>, 3> pools_;
};

}  // namespace lockstep
