// What follows the mixer of a layer: a dense MLP, or a mixture of experts.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace lockstep::model {

// Which of the routed experts take a token and with what weights, and the weights of the shared
// ones. Exposed for tests.
struct Routing {
  struct Choice {
    std::int64_t expert = 0;
    float weight = 0;
  };
  std::vector<Choice> chosen;  // by ascending expert
  std::vector<float> shared;
};
// `logits` are the products with the router's matrix. Equal scores: the lower expert is chosen.
Routing route(const ExpertShape& shape, const ExpertWeights& weights, const float* logits);

// Computes the MLP of one layer for rows of normed hidden states. Keeps its buffers.
class FeedForward {
 public:
  // All outlive this. REQUIRES: kind is not none.
  FeedForward(const DecoderShape& shape, const LayerWeights& weights, Mlp kind)
      : shape_(shape), weights_(weights), kind_(kind) {}

  // y[row] = mlp(x[row]), `count` rows of `hidden`; y is not x.
  void run(const float* x, std::int64_t count, float* y);

 private:
  void dense(const MlpWeights& mlp, const float* x, std::int64_t count, float* y);
  // y[i] += weight * (mlp(x))[i] for one row.
  void add_expert(const MlpWeights& mlp, float weight, const float* x, float* y);
  void mix_experts(const float* x, float* y);

  const DecoderShape& shape_;
  const LayerWeights& weights_;
  Mlp kind_;
  std::vector<float> gate_;
  std::vector<float> up_;
  std::vector<float> logits_;
  std::vector<float> output_;
};

}  // namespace lockstep::model
