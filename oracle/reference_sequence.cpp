#include "oracle/reference_sequence.h"

#include <algorithm>
#include <cmath>

namespace lockstep::oracle {
namespace {

// Appends `input` to the inputs so far and returns input + the convolution over the last taps;
// inputs before the first token are 0. Without weights there is no convolution.
Array convolve(Array& inputs, const Array& input, const Array& weight) {
  if (weight.empty()) return input;
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

// The first `rotary` elements of each head turn in pairs (i, rotary / 2 + i).
void turn(Array& heads, std::size_t dim, std::size_t rotary, double theta, std::size_t position) {
  for (std::size_t first = 0; first < heads.size(); first += dim) {
    for (std::size_t i = 0; i < rotary / 2; ++i) {
      const double power = 2.0 * static_cast<double>(i) / static_cast<double>(rotary);
      const double angle = static_cast<double>(position) / std::pow(theta, power);
      const double x = heads[first + i];
      const double y = heads[first + rotary / 2 + i];
      heads[first + i] = x * std::cos(angle) - y * std::sin(angle);
      heads[first + rotary / 2 + i] = y * std::cos(angle) + x * std::sin(angle);
    }
  }
}

ReferenceMlp widen_mlp(const model::MlpWeights& w) {
  return {widen(w.gate), widen(w.up), widen(w.down)};
}

ReferenceLayer widen_layer(const model::LayerWeights& w, bool sliding, model::Mlp kind) {
  ReferenceLayer layer;
  layer.sliding = sliding;
  layer.mlp_kind = kind;
  layer.input_norm = widen(w.input_norm);
  layer.query = widen(w.query);
  layer.gate = widen(w.gate);
  layer.latent = widen(w.latent);
  layer.latent_norm = widen(w.latent_norm);
  layer.key = widen(w.key);
  layer.value = widen(w.value);
  layer.relative = widen(w.relative);
  layer.query_norm = widen(w.query_norm);
  layer.key_norm = widen(w.key_norm);
  layer.profiles = widen(w.profiles);
  layer.output = widen(w.output);
  layer.mlp_norm = widen(w.mlp_norm);
  layer.mlp = widen_mlp(w.mlp);
  layer.router = widen(w.experts.router);
  layer.choice_bias = widen(w.experts.choice_bias);
  layer.router_scale = w.experts.scale;
  for (const model::MlpWeights& expert : w.experts.routed)
    layer.routed.push_back(widen_mlp(expert));
  for (const model::MlpWeights& expert : w.experts.shared)
    layer.shared.push_back(widen_mlp(expert));
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
    const LayerId id{static_cast<std::uint32_t>(i)};
    layers.push_back(widen_layer(numbers.weights.layers[i], sliding, numbers.config.mlp(id)));
    layers.back().shape = numbers.config.shape_of(id);
    if (const auto mixer = numbers.config.recurrent(id)) {
      layers.back().recurrent.emplace(*mixer, layers.back().shape,
                                      numbers.weights.layers[i].recurrent);
      layers.back().attends = numbers.config.layers[i] == model::Mixer::full_mamba2;
    }
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
  Array x(row, row + width);
  if (shape.embedding_norm) x = normed(x, weights_->embedding_norm, shape.norm_eps);
  if (extra_key_) add(x, adapter_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const ReferenceLayer& layer = weights_->layers[i];
    const Array input = normed(x, layer.input_norm, shape.norm_eps);
    if (layer.attends) add(x, attention(layer, layers_[i], input));
    if (layer.recurrent) add(x, recur(*layer.recurrent, layers_[i].recurrent, input));
    if (layer.mlp_kind == model::Mlp::none) continue;
    add(x, mlp(layer, layers_[i], normed(x, layer.mlp_norm, shape.norm_eps)));
  }
  x = normed(x, weights_->final_norm, shape.norm_eps);
  for (double& value : x) value /= shape.logit_divisor;
  oracle::append(logits_, times(x, weights_->head));
  if (!recurrent() || tokens_.size() % kStateEvery != 0) return;
  for (History& history : layers_) history.states.push_back(history.recurrent.state);
}

bool ReferenceSequence::recurrent() const {
  return std::any_of(weights_->layers.begin(), weights_->layers.end(),
                     [](const ReferenceLayer& layer) { return layer.recurrent.has_value(); });
}

Array ReferenceSequence::attention(const ReferenceLayer& layer, History& history,
                                   const Array& input) {
  const model::DecoderShape& shape = layer.shape;
  Array inner = input;
  if (shape.latent.rank > 0) {
    const Array latent = times(input, layer.latent);
    const auto rank = latent.begin() + shape.latent.rank;
    inner = normed(Array(latent.begin(), rank), layer.latent_norm, shape.latent.eps);
    inner.insert(inner.end(), rank, latent.end());
  }
  Array query = times(input, layer.query);
  Array key = convolve(history.key_inputs, times(inner, layer.key), layer.key_conv);
  const Array value = convolve(history.value_inputs, times(inner, layer.value), layer.value_conv);
  if (shape.head_norms) {
    query = normed(query, layer.query_norm, shape.norm_eps);
    key = normed(key, layer.key_norm, shape.norm_eps);
  }
  for (Array* heads : {&query, &key}) {
    turn(*heads, static_cast<std::size_t>(shape.head_dim),
         static_cast<std::size_t>(shape.rotary_dim), shape.rope_theta, tokens_.size() - 1);
  }
  oracle::append(history.keys, key);
  oracle::append(history.values, value);
  Array mixed = attend(layer, history, query, times(input, layer.relative));
  if (shape.output_gate) {
    const Array gate = times(input, layer.gate);
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] *= sigmoid(gate[i]);
  }
  return convolve(history.attention_inputs, times(mixed, layer.output), layer.attention_conv);
}

Array ReferenceSequence::attend(const ReferenceLayer& layer, const History& history,
                                const Array& query, const Array& relative) const {
  const model::DecoderShape& shape = layer.shape;
  const auto dim = static_cast<std::size_t>(shape.head_dim);
  const auto components = static_cast<std::size_t>(shape.relative_dim);
  const auto kv_width = static_cast<std::size_t>(shape.kv_width());
  const auto window = static_cast<std::size_t>(weights_->numbers.config.window.value());
  const std::size_t extent = components > 0 ? layer.profiles.size() / components : 0;
  const double divisor =
      shape.root_scale ? std::sqrt(static_cast<double>(dim)) : static_cast<double>(dim);
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
      scores[s - first] = dot / divisor;
    }
    for (std::size_t r = 0; r < components; ++r) {
      const double weight = relative[head * components + r];
      const double* profile = layer.profiles.data() + r * extent;
      for (std::size_t distance = 0; distance < std::min(extent, scores.size()); ++distance) {
        scores[t - first - distance] += weight * profile[distance];
      }
    }
    if (shape.scaling_strength != 0 && !layer.sliding) {
      const double ratio = static_cast<double>(t + 1) / static_cast<double>(shape.scaling_from);
      for (double& score : scores) {
        score *= 1 + shape.scaling_strength * std::log(std::max(ratio, 1.0));
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
  const Array output = layer.mlp_kind == model::Mlp::dense ? dense(layer.shape, layer.mlp, input)
                                                           : mixture(layer, input);
  return convolve(history.mlp_inputs, output, layer.mlp_conv);
}

Array ReferenceSequence::dense(const model::DecoderShape& shape, const ReferenceMlp& mlp,
                               const Array& input) {
  Array inner = times(input, mlp.up);
  if (shape.activation == model::Activation::squared_relu) {
    for (double& value : inner) value = value > 0 ? value * value : 0;
  } else {
    const Array gate = times(input, mlp.gate);
    for (std::size_t i = 0; i < gate.size(); ++i) inner[i] *= gate[i] * sigmoid(gate[i]);
  }
  return times(inner, mlp.down);
}

Array ReferenceSequence::mixture(const ReferenceLayer& layer, const Array& input) {
  const model::ExpertShape& experts = layer.shape.experts;
  const Array logits = times(input, layer.router);
  const auto score = [&](std::size_t i) {
    // A softmax over all of them differs from this by a factor, which the division takes out.
    return experts.score == model::RouterScore::sigmoid ? sigmoid(logits[i]) : std::exp(logits[i]);
  };
  // The best one that is not taken yet, as often as experts are chosen.
  std::vector<std::size_t> chosen;
  double sum = 0;
  while (chosen.size() < static_cast<std::size_t>(experts.chosen)) {
    std::size_t best = layer.routed.size();
    double best_score = 0;
    for (std::size_t i = 0; i < layer.routed.size(); ++i) {
      const double own = score(i) + (layer.choice_bias.empty() ? 0 : layer.choice_bias[i]);
      if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
      if (best < layer.routed.size() && own <= best_score) continue;
      best = i;
      best_score = own;
    }
    chosen.push_back(best);
    sum += score(best);
  }
  const bool scored = experts.shared_weight == model::SharedWeight::scored;
  for (std::size_t i = 0; scored && i < layer.shared.size(); ++i) {
    sum += score(layer.routed.size() + i);
  }
  Array output(input.size());
  const auto add_weighted = [&](const ReferenceMlp& expert, double weight) {
    const Array own = dense(layer.shape, expert, input);
    for (std::size_t i = 0; i < own.size(); ++i) output[i] += weight * own[i];
  };
  for (const std::size_t expert : chosen) {
    add_weighted(layer.routed[expert], score(expert) / sum * layer.router_scale);
  }
  for (std::size_t i = 0; i < layer.shared.size(); ++i) {
    const std::size_t column = layer.routed.size() + i;
    double weight = 1;
    if (scored) weight = score(column) / sum * layer.router_scale;
    if (experts.shared_weight == model::SharedWeight::gated) weight = sigmoid(logits[column]);
    add_weighted(layer.shared[i], weight);
  }
  return output;
}

void ReferenceSequence::truncate(Tokens length) {
  if (!recurrent()) return cut(length.index());
  // Back to the last state that was kept, and forward again.
  const std::size_t kept = length.index() / kStateEvery * kStateEvery;
  const std::vector<TokenId> again(tokens_.begin() + static_cast<std::ptrdiff_t>(kept),
                                   tokens_.begin() + static_cast<std::ptrdiff_t>(length.index()));
  cut(kept);
  for (const TokenId token : again) append(token);
}

void ReferenceSequence::cut(std::size_t length) {
  const model::ModelConfig& config = weights_->numbers.config;
  const auto keep = [&](Array& all, std::int64_t width) {
    all.resize(std::min(all.size(), length * static_cast<std::size_t>(width)));
  };
  tokens_.resize(length);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    History& history = layers_[i];
    const ReferenceLayer& layer = weights_->layers[i];
    for (Array* all :
         {&history.keys, &history.values, &history.key_inputs, &history.value_inputs}) {
      keep(*all, layer.shape.kv_width());
    }
    for (Array* all : {&history.attention_inputs, &history.mlp_inputs}) {
      keep(*all, config.shape.hidden);
    }
    if (!layer.recurrent) continue;
    keep(history.recurrent.conv_inputs,
         model::recurrent_sizes(layer.shape, layer.recurrent->mixer).conv_channels);
    history.states.resize(length / kStateEvery);
    history.recurrent.state = history.states.empty() ? Array() : history.states.back();
  }
  keep(logits_, config.vocab);
}

std::span<const double> ReferenceSequence::logits(Tokens position) const {
  const auto vocab = static_cast<std::size_t>(weights_->numbers.config.vocab);
  return {logits_.data() + position.index() * vocab, vocab};
}

Bytes ReferenceSequence::token_bytes() const {
  const model::ModelConfig& config = weights_->numbers.config;
  std::int64_t values = config.vocab;
  for (const ReferenceLayer& layer : weights_->layers) {
    if (layer.attends) values += 2 * layer.shape.kv_width();
    if (!layer.key_conv.empty()) values += 2 * layer.shape.kv_width() + 2 * config.shape.hidden;
    if (!layer.recurrent) continue;
    const auto sizes = model::recurrent_sizes(layer.shape, layer.recurrent->mixer);
    values += sizes.conv_channels + sizes.temporal / static_cast<std::int64_t>(kStateEvery);
  }
  return Bytes{values * static_cast<std::int64_t>(sizeof(double))};
}

}  // namespace lockstep::oracle
