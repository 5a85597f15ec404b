// The recurrent mixers (model/recurrent.h) as kernels of a device, with the orders of
// model/kernels.h.
//
// A row of a state belongs to four lanes, which are the four strided lanes of its dots: lane l has
// the elements l, l + 4, l + 8, ... in registers, from the first token of a segment to the last. A
// unit has eight rows of one head. Only at the ends and at snapshots does the state touch memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/kernel.h"
#include "model/decoder_kernels.h"
#include "model/fingerprint_kernels.h"

namespace lockstep::model {

inline constexpr Index kDotLanes = 4;
inline constexpr Index kStateRows = kWarpLanes / kDotLanes;  // of a unit

// The layer's part of the slots of one segment.
struct DeviceStates {
  float* slots;  // slot 0 at this layer
  Index row_floats;
  std::uint32_t q;
  const DeviceSnapshot* snapshots;  // by ascending tokens
  Index snapshot_count;

  LOCKSTEP_HD float* at(std::uint32_t row) const { return slots + row * row_floats; }
};

// One lane's part of a row.
template <Index kPerLane>
struct StatePart {
  float at[kPerLane];
};

// What the kernels below have in common: rows of kDotLanes * kPerLane elements in registers.
template <Index kPerLane>
struct StateRows {
  static constexpr Index kWidth = kDotLanes * kPerLane;
  Index first;  // row of the state
  Index count;  // rows of the state, from 0 on, that there are
  Lanes<StatePart<kPerLane>> parts;

  LOCKSTEP_HD Index row_of(int lane) const { return first + lane / kDotLanes; }
  LOCKSTEP_HD bool has(int lane) const { return row_of(lane) < count; }
  LOCKSTEP_HD static Index element(int lane, Index i) { return lane % kDotLanes + kDotLanes * i; }

  LOCKSTEP_HD void load(const Warp& warp, const float* state) {
    warp.each([&](int lane) {
      for (Index i = 0; i < kPerLane; ++i) {
        parts[lane].at[i] = has(lane) ? state[row_of(lane) * kWidth + element(lane, i)] : 0.0f;
      }
    });
  }
  LOCKSTEP_HD void store(const Warp& warp, float* state) const {
    warp.each([&](int lane) {
      for (Index i = 0; i < kPerLane && has(lane); ++i) {
        state[row_of(lane) * kWidth + element(lane, i)] = parts[lane].at[i];
      }
    });
  }
  // state_dot() of each row with `other`, in each of the row's lanes.
  LOCKSTEP_HD Lanes<float> dot(const Warp& warp, const float* other) const {
    Lanes<float> sums;
    warp.each([&](int lane) {
      float sum = 0.0f;
      for (Index i = 0; i < kPerLane; ++i) {
        sum = detmath::fma(parts[lane].at[i], other[element(lane, i)], sum);
      }
      sums[lane] = sum;
    });
    return warp.quad_sum(sums);
  }
};

// After token number `done` of the segment: what belongs into snapshots, and in the end into Q.
template <Index kPerLane>
LOCKSTEP_HD void keep_state(const Warp& warp, const StateRows<kPerLane>& rows,
                            const DeviceStates& states, Index done, Index tokens, Index& next) {
  if (next < states.snapshot_count && states.snapshots[next].tokens == done) {
    rows.store(warp, states.at(states.snapshots[next++].row));
  }
  if (done == tokens) rows.store(warp, states.at(states.q));
}

// delta_step() for all tokens. Unit: kStateRows rows of one value head.
template <Index kPerLane>
struct DeltaKernel {
  static constexpr std::string_view kName = "delta";
  DeviceStates states;
  Index tokens;
  Index heads;
  Index value_dim;
  const float* query;  // [tokens][heads][key_dim], normed, so is key
  const float* key;
  const float* decay;  // [tokens][heads][decay_width]
  Index decay_width;   // 1, or key_dim
  const float* beta;   // [tokens][heads]
  const float* value;  // [tokens][value_stride], the head's values in front
  Index value_stride;
  float* y;  // [tokens][heads][value_dim]

  Index units() const { return heads * tiles(value_dim, kStateRows); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    using Rows = StateRows<kPerLane>;
    const Index row_tiles = (value_dim + kStateRows - 1) / kStateRows;
    const Index head = unit / row_tiles;
    Rows rows{head * value_dim + unit % row_tiles * kStateRows, (head + 1) * value_dim, {}};
    rows.load(warp, states.at(states.q));
    Index next = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (Index token = 0; token < tokens; ++token) {
      const Index at = token * heads + head;
      const float* own_key = key + at * Rows::kWidth;
      const float* own_decay = decay + at * decay_width;
      warp.each([&](int lane) {
        for (Index i = 0; i < kPerLane; ++i) {
          rows.parts[lane].at[i] *= own_decay[decay_width == 1 ? 0 : Rows::element(lane, i)];
        }
      });
      const Lanes<float> known = rows.dot(warp, own_key);
      warp.each([&](int lane) {
        if (!rows.has(lane)) return;
        const float change =
            beta[at] * (value[token * value_stride + rows.row_of(lane)] - known[lane]);
        for (Index i = 0; i < kPerLane; ++i) {
          float& element = rows.parts[lane].at[i];
          element = detmath::fma(change, own_key[Rows::element(lane, i)], element);
        }
      });
      const Lanes<float> output = rows.dot(warp, query + at * Rows::kWidth);
      warp.each([&](int lane) {
        if (lane % kDotLanes == 0 && rows.has(lane)) {
          y[token * heads * value_dim + rows.row_of(lane)] = output[lane];
        }
      });
      keep_state(warp, rows, states, token + 1, tokens, next);
    }
  }
};

// mamba2_step() for all tokens. Unit: kStateRows channels of one head.
template <Index kPerLane>
struct Mamba2Kernel {
  static constexpr std::string_view kName = "mamba2";
  DeviceStates states;
  Index tokens;
  Index heads;
  Index head_dim;
  Index groups;
  const float* x;  // [tokens][stride]: channels, then B and C of each group
  Index stride;
  const float* dt;     // [tokens][heads]
  const float* decay;  // [tokens][heads]
  const float* skip;   // [heads]
  float* y;            // [tokens][heads][head_dim]

  Index units() const { return heads * tiles(head_dim, kStateRows); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    using Rows = StateRows<kPerLane>;
    const Index row_tiles = (head_dim + kStateRows - 1) / kStateRows;
    const Index head = unit / row_tiles;
    const Index group = head * groups / heads;
    Rows rows{head * head_dim + unit % row_tiles * kStateRows, (head + 1) * head_dim, {}};
    rows.load(warp, states.at(states.q));
    Index next = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (Index token = 0; token < tokens; ++token) {
      const Index at = token * heads + head;
      const float* own = x + token * stride;
      const float* input = own + heads * head_dim + group * Rows::kWidth;
      warp.each([&](int lane) {
        if (!rows.has(lane)) return;
        const float scaled = dt[at] * own[rows.row_of(lane)];
        for (Index i = 0; i < kPerLane; ++i) {
          float& element = rows.parts[lane].at[i];
          element = detmath::fma(scaled, input[Rows::element(lane, i)], element * decay[at]);
        }
      });
      const Lanes<float> dot = rows.dot(warp, input + groups * Rows::kWidth);
      warp.each([&](int lane) {
        if (lane % kDotLanes != 0 || !rows.has(lane)) return;
        y[token * heads * head_dim + rows.row_of(lane)] =
            detmath::fma(skip[head], own[rows.row_of(lane)], dot[lane]);
      });
      keep_state(warp, rows, states, token + 1, tokens, next);
    }
  }
};

// e^(-e^a_log softplus(x)).
LOCKSTEP_HD float unit_decay(float a_log, float x) {
  return detmath::exp_neg(-(detmath::exp(a_log) * detmath::softplus(x)));
}

// What a delta rule needs of each token and value head. Unit: one of them.
struct DeltaPrepareKernel {
  static constexpr std::string_view kName = "delta.prepare";
  const float* convolved;  // [tokens][conv_channels]: queries, keys, values
  Index conv_channels;
  const float* projected;  // [tokens][stride]
  Index stride;
  Index beta_column;
  Index decay_column;  // GDN: of a; KDA: of what the decay is projected from
  Index key_heads;
  Index heads;
  Index key_dim;
  Index rank;  // KDA; 0: GDN
  const float* a_log;
  const float* dt_bias;
  const float* decay_matrix;  // KDA: [rank][heads * key_dim]
  float query_scale;
  float eps;
  float* query;
  float* key;
  float* decay;
  float* beta;

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index token = unit / heads;
    const Index head = unit % heads;
    const float* row = convolved + token * conv_channels + head * key_heads / heads * key_dim;
    unit_norm(warp, row, query_scale, query + unit * key_dim);
    unit_norm(warp, row + key_heads * key_dim, 1.0f, key + unit * key_dim);
    const float* own = projected + token * stride;
    warp.each([&](int lane) {
      if (lane == 0) beta[unit] = detmath::sigmoid(own[beta_column + head]);
      if (lane == 0 && rank == 0) {
        decay[unit] = unit_decay(a_log[head], own[decay_column + head] + dt_bias[head]);
      }
      for (Index k = lane; k < key_dim && rank > 0; k += kWarpLanes) {
        const Index column = head * key_dim + k;
        float f = 0.0f;
        for (Index r = 0; r < rank; ++r) {
          f = detmath::fma(own[decay_column + r], decay_matrix[r * heads * key_dim + column], f);
        }
        decay[unit * key_dim + k] = unit_decay(a_log[head], f + dt_bias[column]);
      }
    });
  }

 private:
  LOCKSTEP_HD void unit_norm(const Warp& warp, const float* x, float factor, float* target) const {
    Lanes<float> sums;
    warp.each([&](int lane) {
      float sum = 0.0f;
      for (Index i = lane % kDotLanes; i < key_dim; i += kDotLanes) {
        sum = detmath::fma(x[i], x[i], sum);
      }
      sums[lane] = sum;
    });
    const Lanes<float> squares = warp.quad_sum(sums);
    warp.each([&](int lane) {
      const float scale = detmath::rsqrt(squares[lane] + eps) * factor;
      for (Index i = lane; i < key_dim; i += kWarpLanes) target[i] = x[i] * scale;
    });
  }
};

// Steps and decays of Mamba2. Unit: 32 of [tokens][heads].
struct Mamba2PrepareKernel {
  static constexpr std::string_view kName = "mamba2.prepare";
  const float* steps;  // [tokens][stride]
  Index stride;
  Index tokens;
  Index heads;
  const float* a_log;
  const float* dt_bias;
  float* dt;
  float* decay;

  Index units() const { return tiles(tokens * heads, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index i = unit * kWarpLanes + lane;
      if (i >= tokens * heads) return;
      const Index head = i % heads;
      const float step = detmath::softplus(steps[i / heads * stride + head] + dt_bias[head]);
      dt[i] = step;
      decay[i] = detmath::exp_neg(-(detmath::exp(a_log[head]) * step));
    });
  }
};

// convolve_plain(), then silu if asked for. Unit: 32 channels of one token.
struct ConvolvePlainKernel {
  static constexpr std::string_view kName = "convolve.plain";
  const float* state;   // [taps - 1][channels], oldest first
  const float* inputs;  // [tokens][stride]
  Index stride;
  const float* weights;
  const float* bias;  // may be null
  Index tokens;
  Index taps;
  Index channels;
  bool silu;
  float* y;  // [tokens][channels]

  Index units() const { return tokens * tiles(channels, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index channel_tiles = (channels + kWarpLanes - 1) / kWarpLanes;
    const Index token = unit / channel_tiles;
    warp.each([&](int lane) {
      const Index channel = unit % channel_tiles * kWarpLanes + lane;
      if (channel >= channels) return;
      float sum = bias != nullptr ? bias[channel] : 0.0f;
      for (Index tap = 0; tap < taps; ++tap) {
        const Index at = token + tap;  // counted over state and inputs
        const float input = at < taps - 1 ? state[at * channels + channel]
                                          : inputs[(at - (taps - 1)) * stride + channel];
        sum = detmath::fma(weights[tap * channels + channel], input, sum);
      }
      y[token * channels + channel] = silu ? detmath::silu(sum) : sum;
    });
  }
};

enum class FactorKind { plain, silu, sigmoid };

// target[t][i] *= f(factor[t][i]). Unit: 32 elements.
struct MultiplyKernel {
  static constexpr std::string_view kName = "multiply";
  float* target;
  Index target_stride;
  const float* factor;
  Index factor_stride;
  Index tokens;
  Index width;
  FactorKind kind;

  Index units() const { return tiles(tokens * width, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index i = unit * kWarpLanes + lane;
      if (i >= tokens * width) return;
      const float x = factor[i / width * factor_stride + i % width];
      const float f = kind == FactorKind::plain  ? x
                      : kind == FactorKind::silu ? detmath::silu(x)
                                                 : detmath::sigmoid(x);
      float& value = target[i / width * target_stride + i % width];
      value = value * f;
    });
  }
};

// target += update. Unit: 32 elements.
struct AddKernel {
  static constexpr std::string_view kName = "add";
  const float* update;
  Index count;
  float* target;

  Index units() const { return tiles(count, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index i = unit * kWarpLanes + lane;
      if (i < count) target[i] += update[i];
    });
  }
};

}  // namespace lockstep::model
