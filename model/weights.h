// The weights of a numeric decoder: plain arrays in fp32, drawn from a seed or read from a
// checkpoint. The kernels and the fp64 reference share these and the configuration, nothing else.
//
// A matrix is stored [inputs][outputs]; a convolution [tap][channel], oldest tap first. What a
// decoder's shape does not have is empty.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace lockstep::model {

struct MlpWeights {
  std::vector<float> gate;  // [hidden][width]; empty for squared_relu
  std::vector<float> up;    // [hidden][width]
  std::vector<float> down;  // [width][hidden]
};

struct ExpertWeights {
  std::vector<float> router;       // [hidden][ExpertShape::logits()], the routed ones first
  std::vector<float> choice_bias;  // [routed]
  float scale = 1;
  std::vector<MlpWeights> routed;
  std::vector<MlpWeights> shared;
};

// Of a recurrent mixer; RecurrentSizes has the columns.
struct RecurrentWeights {
  std::vector<float> in;         // [hidden][projected]
  std::vector<float> conv;       // [taps][conv_channels]
  std::vector<float> conv_bias;  // [conv_channels]
  std::vector<float> a_log;      // [heads]: the decay of a unit step is e^(-e^a_log)
  std::vector<float> dt_bias;    // [heads], KDA: [heads * key_dim]
  std::vector<float> skip;       // Mamba2's D: [heads]
  std::vector<float> decay;      // KDA: [rank][heads * key_dim]
  std::vector<float> gate;       // KDA: [rank][output]
  std::vector<float> norm;       // Mamba2: [output]; the delta rules: [value_dim]
  std::vector<float> out;        // [output][hidden]
};

struct LayerWeights {
  std::vector<float> input_norm;   // [hidden]
  std::vector<float> query;        // [hidden][heads * head_dim]
  std::vector<float> gate;         // [hidden][heads * head_dim], of the attention output
  std::vector<float> latent;       // [hidden][latent width]
  std::vector<float> latent_norm;  // [latent rank]
  // Their inputs are the hidden state, or the latent vector where there is one.
  std::vector<float> key;         // [inputs][kv_heads * head_dim]
  std::vector<float> value;       // [inputs][kv_heads * head_dim]
  std::vector<float> relative;    // [hidden][heads * relative_dim]
  std::vector<float> query_norm;  // [head_dim]
  std::vector<float> key_norm;    // [head_dim]
  std::vector<float> profiles;    // [relative_dim][bias extent]: bias by distance
  std::vector<float> output;      // [heads * head_dim][hidden]
  std::vector<float> mlp_norm;    // [hidden]
  RecurrentWeights recurrent;
  MlpWeights mlp;
  ExpertWeights experts;
  std::vector<float> key_conv;
  std::vector<float> value_conv;
  std::vector<float> attention_conv;
  std::vector<float> mlp_conv;
};

struct Weights {
  std::uint64_t seed = 0;
  std::vector<float> embedding;       // [vocab][hidden]
  std::vector<float> embedding_norm;  // [hidden]
  std::vector<LayerWeights> layers;
  std::vector<float> final_norm;  // [hidden]
  std::vector<float> head;        // [hidden][vocab]

  // What an adapter adds to every normed embedding: [hidden].
  std::vector<float> adapter(std::string_view extra_key) const;
};

// Uniform draws with the usual deviations (1 / sqrt(inputs) for a matrix), each tensor from its
// own substream of the seed.
Weights draw_weights(const ModelConfig& config, std::uint64_t seed);

}  // namespace lockstep::model
