// The readers of the families, one source file each.
#pragma once

#include "model/families/common.h"

namespace lockstep::model {

// Inkling's language model alone: "inkling_text".
Result<void> read_inkling(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);
// Short convolutions and attention: "lfm2".
Result<void> read_lfm2(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);
// GDN, gated attention and experts: "qwen3_next".
Result<void> read_qwen3_next(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);
// KDA, attention on a latent vector, and experts: "kimi_linear".
Result<void> read_kimi_linear(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);
// Mamba2 alone: "mamba2".
Result<void> read_mamba2(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);
// Mamba2, attention, MLPs and experts, each a layer of its own: "nemotron_h".
Result<void> read_nemotron_h(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);
// Attention and Mamba2 side by side in each layer: "falcon_h1".
Result<void> read_falcon_h1(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);

}  // namespace lockstep::model
