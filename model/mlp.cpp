#include "model/mlp.h"

#include <algorithm>
#include <numeric>

#include "model/decoder_layer.h"
#include "model/kernels.h"

namespace lockstep::model {
namespace {

using kernels::Index;

// What the shares of experts are made of: sigmoids, or exponentials below the largest logit.
std::vector<float> scores_of(const ExpertShape& shape, const float* logits) {
  std::vector<float> scores(logits, logits + shape.logits());
  if (shape.score == RouterScore::sigmoid) {
    for (float& score : scores) score = detmath::sigmoid(score);
    return scores;
  }
  const float largest = *std::max_element(scores.begin(), scores.begin() + shape.routed);
  for (Index i = 0; i < shape.routed; ++i) scores[i] = detmath::exp_neg(scores[i] - largest);
  return scores;
}

// The `chosen` routed experts with the largest score + bias, ascending.
std::vector<Index> choose(const ExpertShape& shape, const std::vector<float>& bias,
                          std::vector<float> scores) {
  for (std::size_t i = 0; i < bias.size(); ++i) scores[i] += bias[i];
  std::vector<Index> order(static_cast<std::size_t>(shape.routed));
  std::iota(order.begin(), order.end(), Index{0});
  const auto better = [&](Index a, Index b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  };
  std::sort(order.begin(), order.end(), better);
  order.resize(static_cast<std::size_t>(shape.chosen));
  std::sort(order.begin(), order.end());
  return order;
}

}  // namespace

Routing route(const ExpertShape& shape, const ExpertWeights& weights, const float* logits) {
  const std::vector<float> scores = scores_of(shape, logits);
  const std::vector<Index> chosen = choose(shape, weights.choice_bias, scores);
  float sum = 0;
  for (const Index expert : chosen) sum += scores[expert];
  if (shape.shared_weight == SharedWeight::scored) {
    for (Index i = 0; i < shape.shared; ++i) sum += scores[shape.routed + i];
  }
  Routing routing;
  for (const Index expert : chosen) {
    routing.chosen.push_back({expert, scores[expert] / sum * weights.scale});
  }
  for (Index i = 0; i < shape.shared; ++i) {
    float weight = 1.0f;
    if (shape.shared_weight == SharedWeight::scored) {
      weight = scores[shape.routed + i] / sum * weights.scale;
    } else if (shape.shared_weight == SharedWeight::gated) {
      weight = detmath::sigmoid(logits[shape.routed + i]);
    }
    routing.shared.push_back(weight);
  }
  return routing;
}

void FeedForward::run(const float* x, std::int64_t count, float* y) {
  if (kind_ == Mlp::dense) return dense(weights_.mlp, x, count, y);
  for (Index row = 0; row < count; ++row) {
    mix_experts(x + row * shape_.hidden, y + row * shape_.hidden);
  }
}

void FeedForward::dense(const MlpWeights& mlp, const float* x, std::int64_t count, float* y) {
  const Index width = static_cast<Index>(mlp.up.size()) / shape_.hidden;
  const auto size = static_cast<std::size_t>(count * width);
  up_.resize(std::max(up_.size(), size));
  project_rows(x, count, shape_.hidden, mlp.up, width, up_.data());
  if (shape_.activation == Activation::gated_silu) {
    gate_.resize(std::max(gate_.size(), size));
    project_rows(x, count, shape_.hidden, mlp.gate, width, gate_.data());
    kernels::gate(gate_.data(), up_.data(), count * width, up_.data());
  } else {
    kernels::squared_relu(up_.data(), count * width, up_.data());
  }
  project_rows(up_.data(), count, width, mlp.down, shape_.hidden, y);
}

void FeedForward::add_expert(const MlpWeights& mlp, float weight, const float* x, float* y) {
  output_.resize(static_cast<std::size_t>(shape_.hidden));
  dense(mlp, x, 1, output_.data());
  for (Index i = 0; i < shape_.hidden; ++i) y[i] = detmath::fma(weight, output_[i], y[i]);
}

void FeedForward::mix_experts(const float* x, float* y) {
  const ExpertShape& shape = shape_.experts;
  const ExpertWeights& weights = weights_.experts;
  logits_.resize(static_cast<std::size_t>(shape.logits()));
  project_rows(x, 1, shape_.hidden, weights.router, shape.logits(), logits_.data());
  const Routing routing = route(shape, weights, logits_.data());
  std::fill(y, y + shape_.hidden, 0.0f);
  for (const Routing::Choice& choice : routing.chosen) {
    add_expert(weights.routed[choice.expert], choice.weight, x, y);
  }
  for (std::size_t i = 0; i < routing.shared.size(); ++i) {
    add_expert(weights.shared[i], routing.shared[i], x, y);
  }
}

}  // namespace lockstep::model
