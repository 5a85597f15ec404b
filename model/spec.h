// A model as a scenario or a command line names it: a preset, with what is overridden, or a
// checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"

namespace lockstep::model {

struct ModelSpec {
  std::string preset = "fingerprint";
  // A folder (model/checkpoint.h), from the working directory on; takes the place of the preset.
  // Its weights fix window, vocab and layers.
  std::optional<std::string> checkpoint;
  std::optional<Tokens> window;
  std::optional<Tokens> state_chunk;
  std::optional<std::int64_t> vocab;
  std::optional<std::vector<std::string>>
      layers;  // mixers: "full", "swa", "rec" (fingerprint), "mamba2", ...
  // Properties that the start-up checks refuse (semantics 8); a scenario sets them to show that
  // they are refused.
  bool kv_scale = false;
  bool virtual_slots = false;
  std::string state_dtype = "float32";
  std::vector<std::string> extra_slot_state;
  bool contiguous_rows = true;
  std::optional<Tokens> swa_page;  // a page size of the SWA pool that differs from the FULL pool's
  std::string source;              // where it was named, for errors
  bool operator==(const ModelSpec&) const = default;
};

}  // namespace lockstep::model
