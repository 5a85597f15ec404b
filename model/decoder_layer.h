// One layer of the numeric decoder on a segment's tokens, on the host.
#pragma once

#include <span>
#include <vector>

#include "model/attention.h"
#include "model/model.h"
#include "model/rope.h"
#include "model/weights.h"

namespace lockstep::model {

// What does not change between forwards. Points into the model.
struct LayerPlan {
  LayerId layer;
  Attention attention = Attention::full;
  std::optional<Mixer> recurrent = {};
  std::int64_t window = 0;  // 0: every token below
  std::int64_t taps = 0;
  const DecoderShape* shape = nullptr;  // with the heads of this layer
  const LayerWeights* weights = nullptr;
  const BiasTable* bias = nullptr;
  const Rope* rope = nullptr;  // null: positions turn nothing
  Mlp mlp = Mlp::dense;
  bool shares_recurrent = false;  // model/shard.h
};

// h += attention(norm(h)) + recurrent(norm(h)), whichever of the two there is, then
// h += mlp(norm(h)); `hidden` is [tokens][hidden]. Short segments and
// long ones go through the same tiles of tokens; no bit depends on how tokens fall into tiles.
void run_decoder_layer(const LayerPlan& plan, const Segment& segment, const Memory& memory,
                       std::span<float> hidden);

// The same in two parts, for a shard: the shard's heads as far as the output projection, into
// `partial` [tokens][hidden]; then the sum over the `partials` of all shards and the rest.
void run_decoder_heads(const LayerPlan& plan, const Segment& segment, const Memory& memory,
                       std::span<const float> hidden, std::span<float> partial);
void combine_decoder_heads(const LayerPlan& plan, const Segment& segment, const Memory& memory,
                           std::span<const std::span<const float>> partials,
                           std::span<float> hidden);

// Bytes of one layer's part of a slot: the last taps - 1 inputs of each of the four convolutions,
// if the decoder has them.
std::int64_t conv_state_bytes(const DecoderShape& shape, std::int64_t taps);

// y[row] = norm of x[row], for rows of `width`; y may be x.
void norm_rows(const float* x, std::int64_t rows, std::int64_t width,
               const std::vector<float>& weight, float eps, float* y);
// y[row][j] = sum over k of x[row][k] * matrix[k][j].
void project_rows(const float* x, std::int64_t rows, std::int64_t inputs,
                  const std::vector<float>& matrix, std::int64_t outputs, float* y);
// The same with one sum per head, which are combined in a balanced tree. REQUIRES: the number of
// heads is a power of two.
void project_head_rows(const float* x, std::int64_t rows, HeadShape heads,
                       const std::vector<float>& matrix, std::int64_t outputs, float* y);

}  // namespace lockstep::model
