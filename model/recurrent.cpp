#include "model/recurrent.h"

#include <algorithm>

#include "model/decoder_layer.h"
#include "model/kernels.h"

namespace lockstep::model {
namespace {

using kernels::Index;

constexpr float kUnitNormEps = 1e-6f;

std::size_t size(Index count) {
  return static_cast<std::size_t>(count);
}

void silu_all(float* values, Index count) {
  for (Index i = 0; i < count; ++i) values[i] = detmath::silu(values[i]);
}

// e^(-e^a_log softplus(x)).
float decay_of(float a_log, float x) {
  return detmath::exp_neg(-(detmath::exp(a_log) * detmath::softplus(x)));
}

}  // namespace

RecurrentMixer::RecurrentMixer(Mixer mixer, const DecoderShape& shape,
                               const RecurrentWeights& weights, std::int64_t taps,
                               std::int64_t tile)
    : mixer_(mixer),
      shape_(shape),
      weights_(weights),
      sizes_(recurrent_sizes(shape, mixer)),
      conv_(sizes_.conv_channels, taps, tile, weights.conv),
      state_(size(sizes_.temporal)),
      projected_(size(tile * sizes_.projected)),
      convolved_(size(tile * sizes_.conv_channels)),
      mixed_(size(tile * sizes_.output)) {}

void RecurrentMixer::load(const float* state) {
  std::copy(state, state + sizes_.temporal, state_.data());
  conv_.load(state + sizes_.temporal);
}

void RecurrentMixer::save(std::int64_t count, float* state) const {
  std::copy(state_.begin(), state_.end(), state);
  conv_.save(count, state + sizes_.temporal);
}

void RecurrentMixer::run(const float* normed, std::int64_t count, float* y) {
  project_rows(normed, count, shape_.hidden, weights_.in, sizes_.projected, projected_.data());
  for (Index row = 0; row < count; ++row) {
    float* inputs = projected_.data() + row * sizes_.projected + sizes_.conv_begin;
    if (mixer_ == Mixer::shortconv) {
      const float* factor = projected_.data() + row * sizes_.projected;  // B
      for (Index i = 0; i < shape_.hidden; ++i) inputs[i] *= factor[i];
    }
    std::copy(inputs, inputs + sizes_.conv_channels, conv_.tile() + row * sizes_.conv_channels);
  }
  conv_.run_plain(count, weights_.conv_bias, convolved_.data());
  if (mixer_ != Mixer::shortconv) silu_all(convolved_.data(), count * sizes_.conv_channels);
  for (Index row = 0; row < count; ++row) {
    float* projected = projected_.data() + row * sizes_.projected;
    const float* convolved = convolved_.data() + row * sizes_.conv_channels;
    std::copy(convolved, convolved + sizes_.conv_channels, projected + sizes_.conv_begin);
    step(projected, mixed_.data() + row * sizes_.output);
  }
  if (mixer_ == Mixer::shortconv) {
    project_rows(mixed_.data(), count, sizes_.output, weights_.out, shape_.hidden, y);
    return;
  }
  const bool ssm = mixer_ == Mixer::mamba2;
  const HeadShape heads{ssm ? shape_.mamba2.heads : shape_.delta.value_heads, 1,
                        ssm ? shape_.mamba2.head_dim : shape_.delta.value_dim};
  project_head_rows(mixed_.data(), count, heads, weights_.out, shape_.hidden, y);
}

void RecurrentMixer::step(const float* row, float* y) {
  if (mixer_ == Mixer::mamba2) return mamba2(row, y);
  if (mixer_ != Mixer::shortconv) return delta_rule(row, y);
  const float* factor = row + shape_.hidden;  // C
  const float* convolved = row + sizes_.conv_begin;
  for (Index i = 0; i < shape_.hidden; ++i) y[i] = factor[i] * convolved[i];
}

void RecurrentMixer::mamba2(const float* row, float* y) {
  const Mamba2Shape& shape = shape_.mamba2;
  const float* x = row + sizes_.conv_begin;
  const float* inputs = x + shape.channels();
  const float* outputs = inputs + shape.groups * shape.state;
  const float* steps = row + sizes_.conv_begin + sizes_.conv_channels;
  for (Index head = 0; head < shape.heads; ++head) {
    const Index group = head * shape.groups / shape.heads;
    kernels::Mamba2Step step{};
    step.head_dim = shape.head_dim;
    step.state_size = shape.state;
    step.dt = detmath::softplus(steps[head] + weights_.dt_bias[head]);
    step.decay = detmath::exp_neg(-(detmath::exp(weights_.a_log[head]) * step.dt));
    step.skip = weights_.skip[head];
    step.input = inputs + group * shape.state;
    step.output = outputs + group * shape.state;
    const Index first = head * shape.head_dim;
    kernels::mamba2_step(step, x + first, state_.data() + first * shape.state, y + first);
  }
  for (Index i = 0; i < shape.channels(); ++i) y[i] *= detmath::silu(row[i]);  // z
  if (!shape.norm) return;
  const Index width = shape.channels() / shape.groups;
  for (Index first = 0; first < shape.channels(); first += width) {
    kernels::rms_norm(y + first, weights_.norm.data() + first, width, shape_.norm_eps, y + first);
  }
}

void RecurrentMixer::decays(const float* row, std::int64_t head, float* decay) {
  const DeltaShape& shape = shape_.delta;
  if (mixer_ == Mixer::gdn) {
    const float* a = row + sizes_.projected - shape.value_heads;
    const float one = decay_of(weights_.a_log[head], a[head] + weights_.dt_bias[head]);
    std::fill(decay, decay + shape.key_dim, one);
    return;
  }
  const float* inner = row + sizes_.projected - 2 * shape.rank;
  const Index width = shape.key_width();
  for (Index k = 0; k < shape.key_dim; ++k) {
    const Index column = head * shape.key_dim + k;
    float f = 0;
    for (Index r = 0; r < shape.rank; ++r) {
      f = detmath::fma(inner[r], weights_.decay[r * width + column], f);
    }
    decay[k] = decay_of(weights_.a_log[head], f + weights_.dt_bias[column]);
  }
}

void RecurrentMixer::delta_rule(const float* row, float* y) {
  const DeltaShape& shape = shape_.delta;
  const float* queries = row;
  const float* keys = row + shape.key_width();
  const float* values = keys + shape.key_width();
  const float* betas = values + shape.value_width();
  if (mixer_ == Mixer::gdn) betas += shape.value_width();  // behind z
  scratch_.resize(size(3 * shape.key_dim));
  float* query = scratch_.data();
  float* key = query + shape.key_dim;
  float* decay = key + shape.key_dim;
  const float query_scale = detmath::rsqrt(static_cast<float>(shape.key_dim));
  for (Index head = 0; head < shape.value_heads; ++head) {
    const Index from = head * shape.key_heads / shape.value_heads * shape.key_dim;
    kernels::unit_norm(queries + from, shape.key_dim, kUnitNormEps, query_scale, query);
    kernels::unit_norm(keys + from, shape.key_dim, kUnitNormEps, 1.0f, key);
    decays(row, head, decay);
    const kernels::DeltaStep step{
        shape.key_dim, shape.value_dim, decay, detmath::sigmoid(betas[head]), query, key};
    const Index first = head * shape.value_dim;
    kernels::delta_step(step, values + first, state_.data() + first * shape.key_dim, y + first);
    kernels::rms_norm(y + first, weights_.norm.data(), shape.value_dim, shape_.norm_eps, y + first);
  }
  gate_delta(row, y);
}

void RecurrentMixer::gate_delta(const float* row, float* y) {
  const DeltaShape& shape = shape_.delta;
  const Index width = shape.value_width();
  if (mixer_ == Mixer::gdn) {
    const float* z = row + 2 * shape.key_width() + width;
    for (Index i = 0; i < width; ++i) y[i] *= detmath::silu(z[i]);
    return;
  }
  std::vector<float> gate(size(width));
  project_rows(row + sizes_.projected - shape.rank, 1, shape.rank, weights_.gate, width,
               gate.data());
  kernels::gate_outputs(gate.data(), width, y);
}

RecurrentState recurrent_state(const DecoderShape& shape, Mixer mixer, std::int64_t taps) {
  const RecurrentSizes sizes = recurrent_sizes(shape, mixer);
  return {sizes.temporal, (taps - 1) * sizes.conv_channels};
}

}  // namespace lockstep::model
