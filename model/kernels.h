// The decoder's arithmetic, once for every build: functions on plain arrays, each with one fixed
// order of operations. `Lanes` and `kCount` say how many neighbouring outputs one call computes;
// they never change the bits. The host build takes packs, a CUDA thread single floats.
//
// Orders:
//   outputs      one fma chain over the inputs, ascending
//   norms        32 strided lanes, then a tree of 16, 8, 4, 2, 1
//   convolution  one fma chain over the taps, oldest first, then + the input, or from the bias on
//   states       dots over a state's row in 4 strided lanes, then (l0 + l2) + (l1 + l3)
//   attention    per block of 16 tokens of the absolute sequence, blocks ascending, exact maximum
//                first; the sum of the weights in 16 strided lanes, then a tree of 8, 4, 2, 1
//   heads        one chain per head in the output projection, heads in a balanced binary tree
#pragma once

#include <cstdint>

#include "model/detmath.h"
#include "model/pack.h"

namespace lockstep::model::kernels {

using Index = std::int64_t;

constexpr Index kLanes = 32;
constexpr Index kBlock = 16;       // tokens of an attention block
constexpr Index kTreeLevels = 17;  // heads <= 2^16

// Far below every score, and finite: the weight of a masked token is exactly 0.
constexpr float kMaskedScore = -0x1.8p+99f;

// Sums kCount lanes, a power of two, by halves. Destroys them.
template <Index kCount>
LOCKSTEP_HD float tree_sum(float* lanes) {
  for (Index half = kCount / 2; half > 0; half /= 2) {
    for (Index lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

LOCKSTEP_HD float mean_square(const float* x, Index count) {
  float lanes[kLanes] = {};
  Index k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    for (Index lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = detmath::fma(x[k + lane], x[k + lane], lanes[lane]);
    }
  }
  for (Index lane = 0; k + lane < count; ++lane) {
    lanes[lane] = detmath::fma(x[k + lane], x[k + lane], lanes[lane]);
  }
  return tree_sum<kLanes>(lanes) / static_cast<float>(count);
}

// y = x / sqrt(mean(x^2) + eps) * weight; y may be x.
LOCKSTEP_HD void rms_norm(const float* x, const float* weight, Index count, float eps, float* y) {
  const float scale = detmath::rsqrt(mean_square(x, count) + eps);
  for (Index i = 0; i < count; ++i) y[i] = x[i] * scale * weight[i];
}

// y[j] = sum over k of x[k] * weights[k][j], for the first kCount lanes of outputs of a matrix with
// `stride` columns.
template <class Lanes, Index kCount>
LOCKSTEP_HD void project(const float* x, Index inputs, const float* weights, Index stride,
                         float* y) {
  constexpr Index kStep = kLanesOf<Lanes>;
  Lanes sum[kCount] = {};
  for (Index k = 0; k < inputs; ++k) {
    const float* row = weights + k * stride;
    for (Index j = 0; j < kCount; ++j) {
      sum[j] = fma_lanes(x[k], load<Lanes>(row + j * kStep), sum[j]);
    }
  }
  for (Index j = 0; j < kCount; ++j) store(y + j * kStep, sum[j]);
}

// project() with one chain per head and the heads in a balanced tree. REQUIRES: heads is a power of
// two.
template <class Lanes, Index kCount>
LOCKSTEP_HD void project_heads(const float* x, Index heads, Index dim, const float* weights,
                               Index stride, float* y) {
  constexpr Index kWidth = kLanesOf<Lanes> * kCount;
  float pending[kTreeLevels][kWidth];  // pending[l]: the sum of 2^l heads that waits for its pair
  for (Index head = 0; head < heads; ++head) {
    project<Lanes, kCount>(x + head * dim, dim, weights + head * dim * stride, stride, y);
    Index level = 0;
    for (; (head >> level & 1) != 0; ++level) {
      for (Index j = 0; j < kWidth; ++j) y[j] = pending[level][j] + y[j];
    }
    for (Index j = 0; j < kWidth; ++j) pending[level][j] = y[j];
  }
}

// y[i] = sum over p of parts[p][i], in the balanced tree of project_heads(). REQUIRES: count is a
// power of two.
LOCKSTEP_HD void sum_tree(const float* const* parts, Index count, Index width, float* y) {
  for (Index i = 0; i < width; ++i) {
    float pending[kTreeLevels];
    float sum = 0;
    for (Index p = 0; p < count; ++p) {
      sum = parts[p][i];
      Index level = 0;
      for (; (p >> level & 1) != 0; ++level) sum = pending[level] + sum;
      pending[level] = sum;
    }
    y[i] = sum;
  }
}

// y[c] = sum over taps of weights[tap][c] * inputs[tap][c], + the newest input.
template <class Lanes>
LOCKSTEP_HD void convolve(const float* inputs, const float* weights, Index taps, Index channels,
                          float* y) {
  Lanes sum = {};
  Lanes input = {};
  for (Index tap = 0; tap < taps; ++tap) {
    input = load<Lanes>(inputs + tap * channels);
    sum = fma_lanes(load<Lanes>(weights + tap * channels), input, sum);
  }
  store(y, sum + input);
}

// y[c] = bias[c] + sum over taps of weights[tap][c] * inputs[tap][c]; without a bias from 0 on.
template <class Lanes>
LOCKSTEP_HD void convolve_plain(const float* inputs, const float* weights, const float* bias,
                                Index taps, Index channels, float* y) {
  Lanes sum = {};
  if (bias != nullptr) sum = load<Lanes>(bias);
  for (Index tap = 0; tap < taps; ++tap) {
    sum =
        fma_lanes(load<Lanes>(weights + tap * channels), load<Lanes>(inputs + tap * channels), sum);
  }
  store(y, sum);
}

LOCKSTEP_HD float state_dot(const float* a, const float* b, Index count) {
  float lanes[4] = {};
  for (Index i = 0; i < count; ++i) lanes[i % 4] = detmath::fma(a[i], b[i], lanes[i % 4]);
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

// One token of one head of Mamba2: state[p][n] = a * state[p][n] + dt x[p] B[n], then
// y[p] = state[p] . C + skip * x[p].
struct Mamba2Step {
  Index head_dim;
  Index state_size;
  float decay;  // a
  float dt;
  float skip;
  const float* input;   // B
  const float* output;  // C
};
LOCKSTEP_HD void mamba2_step(const Mamba2Step& step, const float* x, float* state, float* y) {
  for (Index p = 0; p < step.head_dim; ++p) {
    float* row = state + p * step.state_size;
    const float scaled = step.dt * x[p];
    for (Index n = 0; n < step.state_size; ++n) {
      row[n] = detmath::fma(scaled, step.input[n], row[n] * step.decay);
    }
    const float dot = state_dot(row, step.output, step.state_size);
    y[p] = detmath::fma(step.skip, x[p], dot);
  }
}

// One token of one head of a delta rule, for each of `value_dim` rows of the state:
// row = decay * row, d = beta (v - row . k), row += d k, y = row . q.
struct DeltaStep {
  Index key_dim;
  Index value_dim;
  const float* decay;  // [key_dim]
  float beta;
  const float* query;
  const float* key;
};
LOCKSTEP_HD void delta_step(const DeltaStep& step, const float* value, float* state, float* y) {
  for (Index v = 0; v < step.value_dim; ++v) {
    float* row = state + v * step.key_dim;
    for (Index k = 0; k < step.key_dim; ++k) row[k] *= step.decay[k];
    const float change = step.beta * (value[v] - state_dot(row, step.key, step.key_dim));
    for (Index k = 0; k < step.key_dim; ++k) {
      row[k] = detmath::fma(change, step.key[k], row[k]);
    }
    y[v] = state_dot(row, step.query, step.key_dim);
  }
}

// y = x / sqrt(sum(x^2) + eps) * factor; y may be x.
LOCKSTEP_HD void unit_norm(const float* x, Index count, float eps, float factor, float* y) {
  const float scale = detmath::rsqrt(state_dot(x, x, count) + eps) * factor;
  for (Index i = 0; i < count; ++i) y[i] = x[i] * scale;
}

// The gated activation of the MLP; y may be gate or up.
LOCKSTEP_HD void gate(const float* gate, const float* up, Index count, float* y) {
  for (Index i = 0; i < count; ++i) y[i] = detmath::silu(gate[i]) * up[i];
}

// y[i] = max(x[i], 0)^2; y may be x.
LOCKSTEP_HD void squared_relu(const float* x, Index count, float* y) {
  for (Index i = 0; i < count; ++i) {
    const float positive = x[i] > 0.0f ? x[i] : 0.0f;
    y[i] = positive * positive;
  }
}

// y[i] *= sigmoid(gate[i]).
LOCKSTEP_HD void gate_outputs(const float* gate, Index count, float* y) {
  for (Index i = 0; i < count; ++i) y[i] *= detmath::sigmoid(gate[i]);
}

LOCKSTEP_HD void rotate_pair(float cosine, float sine, float& x, float& y) {
  const float first = x;
  const float second = y;
  x = detmath::fma(first, cosine, -(second * sine));
  y = detmath::fma(second, cosine, first * sine);
}

// Turns the pairs (x[i], x[half + i]) by the angles with these cosines and sines.
LOCKSTEP_HD void rotate(const float* cosines, const float* sines, Index half, float* x) {
  for (Index i = 0; i < half; ++i) {
    rotate_pair(cosines[i], sines[i], x[i], x[half + i]);
  }
}

// The relative bias of a block's tokens: one row of `stride` per component of the relative state,
// from the block's first token on. `profiles` is null where no token of the block has a bias.
struct BlockBias {
  const float* profiles;
  Index stride;
  Index components;
};

// Scores of one query against a block: keys[dim][token]; tokens outside [begin, end) are masked.
template <class Lanes, Index kDim>
LOCKSTEP_HD void score_block(const float* query, const float* keys, float scale,
                             const float* relative, BlockBias bias, Index begin, Index end,
                             float* scores) {
  constexpr Index kStep = kLanesOf<Lanes>;
  constexpr Index kCount = kBlock / kStep;
  Lanes dot[kCount] = {};
  for (Index d = 0; d < kDim; ++d) {
    for (Index i = 0; i < kCount; ++i) {
      dot[i] = fma_lanes(query[d], load<Lanes>(keys + d * kBlock + i * kStep), dot[i]);
    }
  }
  Lanes mixed[kCount] = {};
  for (Index r = 0; bias.profiles != nullptr && r < bias.components; ++r) {
    const float* profile = bias.profiles + r * bias.stride;
    for (Index i = 0; i < kCount; ++i) {
      mixed[i] = fma_lanes(relative[r], load<Lanes>(profile + i * kStep), mixed[i]);
    }
  }
  for (Index i = 0; i < kCount; ++i) store(scores + i * kStep, dot[i] * scale + mixed[i]);
  for (Index i = 0; i < begin; ++i) scores[i] = kMaskedScore;
  for (Index i = end; i < kBlock; ++i) scores[i] = kMaskedScore;
}

LOCKSTEP_HD float maximum(const float* scores, Index count) {
  float lanes[kBlock];
  for (Index i = 0; i < kBlock; ++i) lanes[i] = scores[i];
  for (Index first = kBlock; first < count; first += kBlock) {
    for (Index i = 0; i < kBlock; ++i) {
      lanes[i] = scores[first + i] > lanes[i] ? scores[first + i] : lanes[i];
    }
  }
  float largest = lanes[0];
  for (Index i = 1; i < kBlock; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}

// Turns scores into weights e^(score - maximum) and returns their sum. REQUIRES: whole blocks.
LOCKSTEP_HD float weigh(float* scores, Index count) {
  const float largest = maximum(scores, count);
  float lanes[kBlock] = {};
  for (Index first = 0; first < count; first += kBlock) {
    for (Index i = 0; i < kBlock; ++i) {
      const float weight = detmath::exp_neg(scores[first + i] - largest);
      scores[first + i] = weight;
      lanes[i] += weight;
    }
  }
  return tree_sum<kBlock>(lanes);
}

// output += the block's weighted values, summed within the block first. `values[i]` is the value of
// the block's i-th token; only tokens [begin, end) are read.
template <class Lanes, Index kDim>
LOCKSTEP_HD void accumulate_block(const float* weights, const float* const* values, Index offset,
                                  Index begin, Index end, float* output) {
  constexpr Index kStep = kLanesOf<Lanes>;
  constexpr Index kCount = kDim / kStep;
  Lanes sum[kCount] = {};
  for (Index i = begin; i < end; ++i) {
    const float* value = values[i] + offset;
    for (Index d = 0; d < kCount; ++d) {
      sum[d] = fma_lanes(weights[i], load<Lanes>(value + d * kStep), sum[d]);
    }
  }
  for (Index d = 0; d < kCount; ++d) {
    store(output + d * kStep, load<Lanes>(output + d * kStep) + sum[d]);
  }
}

}  // namespace lockstep::model::kernels
