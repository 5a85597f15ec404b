// Tiny checkpoints of public families: a folder with config.json and model.safetensors, as
// transformers' save_pretrained() writes it.
//
// The family is told by model_type: "inkling_text" (Inkling's language model), "lfm2",
// "qwen3_next", "kimi_linear", "falcon_h1", "nemotron_h", "mamba2". Its own keys are read, and
// every key is known: what changes the arithmetic and is not supported is refused by name, and so
// is a tensor that nobody asked for. Weights are read exactly (F32, BF16, F16), except that
// multipliers of whole projections and norms that are stored around 0 are worked into them, with
// one rounding.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "model/weights.h"

namespace lockstep::model {

struct Checkpoint {
  ModelConfig config;
  Weights weights;
  std::string weights_name;  // equal for equal files
};

// Errors name the file and the key or the tensor, what was found and what was expected.
Result<Checkpoint> read_checkpoint(const std::string& folder);

// The same from the contents of both files; `name` is the model's.
Result<Checkpoint> parse_checkpoint(std::string_view config, std::string tensors,
                                    const std::string& name);

// Of the larger file of a checkpoint that is read at all.
inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{256} << 20;

}  // namespace lockstep::model
