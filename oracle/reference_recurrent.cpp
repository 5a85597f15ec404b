#include "oracle/reference_recurrent.h"

#include <algorithm>
#include <cmath>

namespace lockstep::oracle {
namespace {

using model::Mixer;

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

Array slice(const Array& all, std::int64_t begin, std::int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

double silu(double x) {
  return x * sigmoid(x);
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

// Appends `input` and returns bias + the convolution over the last taps; 0 before the first token.
Array convolved(const ReferenceRecurrent& layer, Array& inputs, const Array& input) {
  const std::size_t channels = input.size();
  const std::size_t taps = layer.conv.size() / channels;
  inputs.insert(inputs.end(), input.begin(), input.end());
  const std::size_t tokens = inputs.size() / channels;
  Array y(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    if (!layer.conv_bias.empty()) y[c] = layer.conv_bias[c];
    for (std::size_t back = 0; back < std::min(taps, tokens); ++back) {
      y[c] +=
          layer.conv[(taps - 1 - back) * channels + c] * inputs[(tokens - 1 - back) * channels + c];
    }
  }
  return y;
}

Array mamba2(const ReferenceRecurrent& layer, RecurrentHistory& history, const Array& input) {
  const model::Mamba2Shape& shape = layer.shape.mamba2;
  const std::int64_t channels = shape.channels();
  const std::int64_t shared = shape.groups * shape.state;
  const Array projected = times(input, layer.in);
  Array mixed =
      convolved(layer, history.conv_inputs, slice(projected, channels, channels + 2 * shared));
  for (double& value : mixed) value = silu(value);
  history.state.resize(size(channels * shape.state));

  Array y(size(channels));
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::int64_t head = c / shape.head_dim;
    const std::int64_t group = head / (shape.heads / shape.groups);
    const double dt = softplus(projected[2 * channels + 2 * shared + head] + layer.dt_bias[head]);
    const double decay = std::exp(-std::exp(layer.a_log[head]) * dt);
    y[c] = layer.skip[head] * mixed[c];
    for (std::int64_t n = 0; n < shape.state; ++n) {
      double& state = history.state[c * shape.state + n];
      state = decay * state + dt * mixed[c] * mixed[channels + group * shape.state + n];
      y[c] += state * mixed[channels + shared + group * shape.state + n];
    }
  }
  for (std::int64_t c = 0; c < channels; ++c) y[c] *= silu(projected[c]);
  if (!shape.norm) return times(y, layer.out);
  Array output;
  const std::int64_t width = channels / shape.groups;
  for (std::int64_t first = 0; first < channels; first += width) {
    const Array group =
        normed(slice(y, first, width), slice(layer.norm, first, width), layer.shape.norm_eps);
    output.insert(output.end(), group.begin(), group.end());
  }
  return times(output, layer.out);
}

// To length 1, nearly.
Array unit(Array x) {
  double squares = 1e-6;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares);
  return x;
}

Array delta_rule(const ReferenceRecurrent& layer, RecurrentHistory& history, const Array& input) {
  const model::DeltaShape& shape = layer.shape.delta;
  const bool kda = layer.mixer == Mixer::kda;
  const std::int64_t keys = shape.key_width();
  const std::int64_t values = shape.value_width();
  const Array projected = times(input, layer.in);
  Array mixed = convolved(layer, history.conv_inputs, slice(projected, 0, 2 * keys + values));
  for (double& value : mixed) value = silu(value);
  history.state.resize(size(values * shape.key_dim));

  // Behind q, k, v: KDA has beta and two low-rank inputs, GDN has z, beta and the decay's input.
  const std::int64_t rest = 2 * keys + values;
  const std::int64_t beta_at = kda ? rest : rest + values;
  const std::int64_t next = beta_at + shape.value_heads;
  Array decay_input = slice(projected, next, kda ? shape.rank : shape.value_heads);
  if (kda) decay_input = times(decay_input, layer.decay);
  const Array gate = kda ? times(slice(projected, next + shape.rank, shape.rank), layer.gate)
                         : slice(projected, rest, values);

  Array all;
  for (std::int64_t head = 0; head < shape.value_heads; ++head) {
    const std::int64_t key_head = head / (shape.value_heads / shape.key_heads);
    DeltaInputs inputs;
    inputs.query = unit(slice(mixed, key_head * shape.key_dim, shape.key_dim));
    inputs.key = unit(slice(mixed, keys + key_head * shape.key_dim, shape.key_dim));
    inputs.value = slice(mixed, 2 * keys + head * shape.value_dim, shape.value_dim);
    inputs.beta = sigmoid(projected[beta_at + head]);
    for (std::int64_t k = 0; k < shape.key_dim; ++k) {
      const std::int64_t at = kda ? head * shape.key_dim + k : head;
      const double step = softplus(decay_input[at] + layer.dt_bias[at]);
      inputs.decay.push_back(std::exp(-std::exp(layer.a_log[head]) * step));
    }
    const Array y =
        delta_head(inputs, history.state.data() + head * shape.value_dim * shape.key_dim);
    const Array normal = normed(y, layer.norm, layer.shape.norm_eps);
    all.insert(all.end(), normal.begin(), normal.end());
  }
  for (std::size_t i = 0; i < all.size(); ++i) all[i] *= kda ? sigmoid(gate[i]) : silu(gate[i]);
  return times(all, layer.out);
}

Array shortconv(const ReferenceRecurrent& layer, RecurrentHistory& history, const Array& input) {
  const std::int64_t hidden = layer.shape.hidden;
  const Array projected = times(input, layer.in);
  Array inner = slice(projected, 2 * hidden, hidden);
  for (std::int64_t i = 0; i < hidden; ++i) inner[i] *= projected[i];
  Array y = convolved(layer, history.conv_inputs, inner);
  for (std::int64_t i = 0; i < hidden; ++i) y[i] *= projected[hidden + i];
  return times(y, layer.out);
}

}  // namespace

Array delta_head(const DeltaInputs& inputs, double* state) {
  const std::size_t keys = inputs.key.size();
  Array y(inputs.value.size());
  for (std::size_t v = 0; v < y.size(); ++v) {
    double* row = state + v * keys;
    double known = 0;
    for (std::size_t k = 0; k < keys; ++k) known += (row[k] *= inputs.decay[k]) * inputs.key[k];
    for (std::size_t k = 0; k < keys; ++k) {
      row[k] += inputs.beta * (inputs.value[v] - known) * inputs.key[k];
      y[v] += row[k] * inputs.query[k] / std::sqrt(static_cast<double>(keys));
    }
  }
  return y;
}

Array widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

Array times(const Array& x, const Array& matrix) {
  const std::size_t outputs = matrix.size() / x.size();
  Array y(outputs);
  for (std::size_t k = 0; k < x.size(); ++k) {
    for (std::size_t j = 0; j < outputs; ++j) y[j] += x[k] * matrix[k * outputs + j];
  }
  return y;
}

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

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

ReferenceRecurrent::ReferenceRecurrent(Mixer kind, const model::DecoderShape& of,
                                       const model::RecurrentWeights& weights)
    : mixer(kind),
      shape(of),
      in(widen(weights.in)),
      conv(widen(weights.conv)),
      conv_bias(widen(weights.conv_bias)),
      a_log(widen(weights.a_log)),
      dt_bias(widen(weights.dt_bias)),
      skip(widen(weights.skip)),
      decay(widen(weights.decay)),
      gate(widen(weights.gate)),
      norm(widen(weights.norm)),
      out(widen(weights.out)) {}

Array recur(const ReferenceRecurrent& layer, RecurrentHistory& history, const Array& input) {
  switch (layer.mixer) {
    case Mixer::mamba2:
      return mamba2(layer, history, input);
    case Mixer::shortconv:
      return shortconv(layer, history, input);
    default:
      return delta_rule(layer, history, input);
  }
}

}  // namespace lockstep::oracle
