// What the readers of several families share. Each reader takes the keys of its config.json, then,
// from a configuration that has been checked, the tensors.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "model/json_fields.h"
#include "model/tensor_reader.h"

namespace lockstep::model {

using ReadFamily = Result<void> (*)(JsonFields& fields, TensorReader& tensors,
                                    Checkpoint& checkpoint);

// vocab_size, hidden_size, intermediate_size, the heads, and keys that change no logit of a
// forward.
void read_common(JsonFields& fields, ModelConfig& config);
// The keys of a time step's limits: only none are supported.
void read_no_limits(JsonFields& fields);
// num_hidden_layers, and layer_types with the mixers that they mean. An error if both are given and
// differ, or a name is not in `names`.
struct LayerName {
  std::string_view name;
  Mixer mixer;
};
std::vector<Mixer> read_layers(JsonFields& fields, std::string_view key,
                               std::span<const LayerName> names, std::int64_t& count);
// rope_parameters, or rope_theta and partial_rotary_factor beside the other keys.
void read_rope(JsonFields& fields, float usual_factor, DecoderShape& shape);
// An error of the fields, or of what they make up together.
Result<void> check_read(const JsonFields& fields, const ModelConfig& config);

// "model.layers.3."
std::string layer_prefix(std::string_view stem, std::size_t layer);
// Names of an MLP's tensors behind a prefix, and what is multiplied into them.
struct MlpNames {
  std::string_view gate = "gate_proj.weight";  // empty: an MLP without a gate
  std::string_view up = "up_proj.weight";
  std::string_view down = "down_proj.weight";
  float gate_factor = 1;
  float down_factor = 1;
};
MlpWeights read_mlp(TensorReader& tensors, const std::string& prefix, std::int64_t hidden,
                    std::int64_t width, const MlpNames& names = {});
// q_proj, k_proj, v_proj and the output projection of ordinary attention.
// Attention's inputs and keys can have factors, and its output.
struct AttentionFactors {
  float input = 1;
  float key = 1;
  float output = 1;
};
void read_projections(TensorReader& tensors, const std::string& prefix, const DecoderShape& shape,
                      const std::string& output, LayerWeights& layer,
                      const AttentionFactors& factors = {});
// Matrices of `inputs` rows, or convolutions of as many taps, as one: column behind column.
std::vector<float> beside(std::int64_t inputs, std::initializer_list<std::vector<float>> parts);
// Factors of what Mamba2's projection gives: z, x, B, C, dt.
using Mamba2Factors = std::array<float, 5>;
inline constexpr Mamba2Factors kPlainMamba2{1, 1, 1, 1, 1};
// The tensors of a Mamba2 mixer of config.shape.
RecurrentWeights read_mamba2_mixer(TensorReader& tensors, const std::string& prefix,
                                   const ModelConfig& config,
                                   const Mamba2Factors& factors = kPlainMamba2,
                                   float out_factor = 1);
// Embedding and head; tied ones are the same tensor.
struct EndFactors {
  float embedding = 1;
  float head = 1;
};
void read_ends(TensorReader& tensors, const ModelConfig& config, const std::string& embedding,
               bool tied, Weights& weights, const EndFactors& factors = {});

}  // namespace lockstep::model
