// The weights of a numeric decoder: plain arrays in fp32, drawn from a seed. The kernels and the
// fp64 reference share these and the configuration, nothing else.
//
// A matrix is stored [inputs][outputs]; a convolution [tap][channel], oldest tap first.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace lockstep::model {

struct LayerWeights {
  std::vector<float> input_norm;  // [hidden]
  std::vector<float> query;       // [hidden][heads * head_dim]
  std::vector<float> key;         // [hidden][kv_heads * head_dim]
  std::vector<float> value;       // [hidden][kv_heads * head_dim]
  std::vector<float> relative;    // [hidden][heads * relative_dim]
  std::vector<float> query_norm;  // [head_dim]
  std::vector<float> key_norm;    // [head_dim]
  std::vector<float> profiles;    // [relative_dim][bias extent]: bias by distance
  std::vector<float> output;      // [heads * head_dim][hidden]
  std::vector<float> mlp_norm;    // [hidden]
  std::vector<float> gate;        // [hidden][intermediate]
  std::vector<float> up;          // [hidden][intermediate]
  std::vector<float> down;        // [intermediate][hidden]
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
