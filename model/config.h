// What a model file says: the shape of a decoder, before weights. A plain value that the kernels
// and the fp64 reference both read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "model/spec.h"

namespace lockstep::model {

// What a layer mixes tokens with. `recurrent` is the fingerprint model's stand-in for every
// recurrent mixer.
enum class Mixer { full, swa, recurrent };

enum class Arithmetic { fingerprint };

// Properties of the cached state that decide whether a row can be copied as it is (semantics of the
// start-up checks).
struct StateProperties {
  bool kv_scale = false;
  bool virtual_slots = false;
  std::string state_dtype = "float32";
  std::vector<std::string> extra_slot_state;
  bool contiguous_rows = true;
};

struct ModelConfig {
  std::string name;  // of the preset, or the file it was read from
  Arithmetic arithmetic = Arithmetic::fingerprint;
  std::vector<Mixer> layers;
  Tokens window;       // token t sees t-window+1 .. t in a sliding-window layer
  Tokens state_chunk;  // see core/geometry.h
  std::int64_t vocab = 0;
  std::int64_t conv_width = 0;  // taps; a slot keeps the last conv_width - 1 inputs
  StateProperties state;
};

// Reads a model file. An error names `source`, the JSON pointer, what was found and what was
// expected.
Result<ModelConfig> parse_model_config(std::string_view text, std::string_view source);

// The preset or file that `spec` names, with its overrides applied and every value checked.
Result<ModelConfig> resolve_model_config(const ModelSpec& spec);

// Every value that changes the arithmetic, as text.
std::string describe(const ModelConfig& config);

}  // namespace lockstep::model
