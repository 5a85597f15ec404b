#include "oracle/reference_sequence.h"

#include <algorithm>
#include <cmath>

namespace lockstep::oracle {
namespace {

Array widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// x / sqrt(mean(x^2) + eps) * weight, for each group of weight.size() values.
Array normed(Array x, const Array& weight, double eps) {
  const std::size_t width = weight.size();
  for (std::size_t first = 0; first < x.size(); first += width) {
    double squares = 0;
    for (std::size_t i = 0; i < width; ++i) squares += x[first + i] * x[first + i];
    const double root = std::sqrt(squares / static_cast<double>(width) + eps);
    for (std::size_t i = 0; i < width; ++i) x[first + i] = x[first + i] / root * weight[i];
  }
  return x;
}

// The row vector x times a matrix [x.size()][outputs].
Array times(const Array& x, const Array& matrix) {
  const std::size_t outputs = matrix.size() / x.size();
  Array y(outputs);
  for (std::size_t k = 0; k < x.size(); ++k) {
    for (std::size_t j = 0; j < outputs; ++j) y[j] += x[k] * matrix[k * outputs + j];
  }
  return y;
}

// Appends `input` to the inputs so far and returns input + the convolution over the last taps;
// inputs before the first token are 0.
Array convolve(Array& inputs, const Array& input, const Array& weight) {
  const std::size_t channels = input.size();
  const std::size_t taps = weight.size() / channels;
  inputs.insert(inputs.end(), input.begin(), input.end());
  const std::size_t tokens = inputs.size() / channels;
  Array y = input;
  for (std::size_t back = 0; back < std::min(taps, tokens); ++back) {
    const double* old = inputs.data() + (tokens - 1 - back) * channels;
    const double* tap = weight.data() + (taps - 1 - back) * channels;
    for (std::size_t c = 0; c < channels; ++c) y[c] += tap[c] * old[c];
  }
  return y;
}

void add(Array& x, const Array& update) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += update[i];
}

void append(Array& all, const Array& row) {
  all.insert(all.end(), row.begin(), row.end());
}

// Turns scores into weights that sum to 1.
void softmax(Array& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

ReferenceLayer widen_layer(const model::LayerWeights& w, bool sliding) {
  ReferenceLayer layer;
  layer.sliding = sliding;
  layer.input_norm = widen(w.input_norm);
  layer.query = widen(w.query);
  layer.key = widen(w.key);
  layer.value = widen(w.value);
  layer.relative = widen(w.relative);
  layer.query_norm = widen(w.query_norm);
  layer.key_norm = widen(w.key_norm);
  layer.profiles = widen(w.profiles);
  layer.output = widen(w.output);
  layer.mlp_norm = widen(w.mlp_norm);
  layer.gate = widen(w.gate);
  layer.up = widen(w.up);
  layer.down = widen(w.down);
  layer.key_conv = widen(w.key_conv);
  layer.value_conv = widen(w.value_conv);
  layer.attention_conv = widen(w.attention_conv);
  layer.mlp_conv = widen(w.mlp_conv);
  return layer;
}

}  // namespace

ReferenceWeights::ReferenceWeights(const model::Numbers& model_numbers)
    : numbers(model_numbers),
      embedding(widen(numbers.weights.embedding)),
      embedding_norm(widen(numbers.weights.embedding_norm)),
      final_norm(widen(numbers.weights.final_norm)),
      head(widen(numbers.weights.head)) {
  for (std::size_t i = 0; i < numbers.weights.layers.size(); ++i) {
    const bool sliding = numbers.config.layers[i] == model::Mixer::swa;
    layers.push_back(widen_layer(numbers.weights.layers[i], sliding));
  }
}

ReferenceSequence::ReferenceSequence(const ReferenceWeights& weights,
                                     std::optional<std::string_view> extra_key)
    : weights_(&weights), extra_key_(extra_key), layers_(weights.layers.size()) {
  if (extra_key) adapter_ = widen(weights.numbers.weights.adapter(*extra_key));
}

void ReferenceSequence::append(TokenId token) {
  const model::DecoderShape& shape = weights_->numbers.config.shape;
  const auto width = static_cast<std::size_t>(shape.hidden);
  tokens_.push_back(token);

  const double* row = weights_->embedding.data() + token.index() * width;
  Array x = normed(Array(row, row + width), weights_->embedding_norm, shape.norm_eps);
  if (extra_key_) add(x, adapter_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const ReferenceLayer& layer = weights_->layers[i];
    add(x, attention(layer, layers_[i], normed(x, layer.input_norm, shape.norm_eps)));
    add(x, mlp(layer, layers_[i], normed(x, layer.mlp_norm, shape.norm_eps)));
  }
  x = normed(x, weights_->final_norm, shape.norm_eps);
  for (double& value : x) value /= shape.logit_divisor;
  oracle::append(logits_, times(x, weights_->head));
}

Array ReferenceSequence::attention(const ReferenceLayer& layer, History& history,
                                   const Array& input) {
  const double eps = weights_->numbers.config.shape.norm_eps;
  const Array query = normed(times(input, layer.query), layer.query_norm, eps);
  const Array key = convolve(history.key_inputs, times(input, layer.key), layer.key_conv);
  const Array value = convolve(history.value_inputs, times(input, layer.value), layer.value_conv);
  oracle::append(history.keys, normed(key, layer.key_norm, eps));
  oracle::append(history.values, value);
  const Array mixed = attend(layer, history, query, times(input, layer.relative));
  return convolve(history.attention_inputs, times(mixed, layer.output), layer.attention_conv);
}

Array ReferenceSequence::attend(const ReferenceLayer& layer, const History& history,
                                const Array& query, const Array& relative) const {
  const model::DecoderShape& shape = weights_->numbers.config.shape;
  const auto dim = static_cast<std::size_t>(shape.head_dim);
  const auto components = static_cast<std::size_t>(shape.relative_dim);
  const auto kv_width = static_cast<std::size_t>(shape.kv_width());
  const auto window = static_cast<std::size_t>(weights_->numbers.config.window.value());
  const std::size_t extent = layer.profiles.size() / components;
  const std::size_t t = tokens_.size() - 1;
  const std::size_t first = layer.sliding && t + 1 > window ? t + 1 - window : 0;

  Array mixed(query.size());
  Array scores(t + 1 - first);
  for (std::size_t head = 0; head < query.size() / dim; ++head) {
    const std::size_t kv_head =
        head * static_cast<std::size_t>(shape.kv_heads) / static_cast<std::size_t>(shape.heads);
    const double* q = query.data() + head * dim;
    for (std::size_t s = first; s <= t; ++s) {
      const double* k = history.keys.data() + s * kv_width + kv_head * dim;
      double dot = 0;
      for (std::size_t d = 0; d < dim; ++d) dot += q[d] * k[d];
      scores[s - first] = dot / static_cast<double>(dim);
    }
    for (std::size_t r = 0; r < components; ++r) {
      const double weight = relative[head * components + r];
      const double* profile = layer.profiles.data() + r * extent;
      for (std::size_t distance = 0; distance < std::min(extent, scores.size()); ++distance) {
        scores[t - first - distance] += weight * profile[distance];
      }
    }
    softmax(scores);
    double* out = mixed.data() + head * dim;
    for (std::size_t s = first; s <= t; ++s) {
      const double* v = history.values.data() + s * kv_width + kv_head * dim;
      for (std::size_t d = 0; d < dim; ++d) out[d] += scores[s - first] * v[d];
    }
  }
  return mixed;
}

Array ReferenceSequence::mlp(const ReferenceLayer& layer, History& history, const Array& input) {
  Array gate = times(input, layer.gate);
  const Array up = times(input, layer.up);
  for (std::size_t i = 0; i < gate.size(); ++i) {
    gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  }
  return convolve(history.mlp_inputs, times(gate, layer.down), layer.mlp_conv);
}

void ReferenceSequence::truncate(Tokens length) {
  const model::ModelConfig& config = weights_->numbers.config;
  const auto keep = [&](Array& all, std::int64_t width) {
    all.resize(length.index() * static_cast<std::size_t>(width));
  };
  tokens_.resize(length.index());
  for (History& history : layers_) {
    for (Array* all :
         {&history.key_inputs, &history.value_inputs, &history.keys, &history.values}) {
      keep(*all, config.shape.kv_width());
    }
    for (Array* all : {&history.attention_inputs, &history.mlp_inputs}) {
      keep(*all, config.shape.hidden);
    }
  }
  keep(logits_, config.vocab);
}

std::span<const double> ReferenceSequence::logits(Tokens position) const {
  const auto vocab = static_cast<std::size_t>(weights_->numbers.config.vocab);
  return {logits_.data() + position.index() * vocab, vocab};
}

Bytes ReferenceSequence::token_bytes() const {
  const model::ModelConfig& config = weights_->numbers.config;
  const std::int64_t per_layer = 4 * config.shape.kv_width() + 2 * config.shape.hidden;
  const std::int64_t values =
      static_cast<std::int64_t>(config.layers.size()) * per_layer + config.vocab;
  return Bytes{values * static_cast<std::int64_t>(sizeof(double))};
}

}  // namespace lockstep::oracle
