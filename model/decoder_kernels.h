// The decoder's arithmetic as kernels of a device: the same functions and the same orders as
// model/kernels.h, one warp per unit. A launch covers all tokens of one segment; how many there are
// changes the number of units and no bit.
//
// Loads are 16 bytes wide and neighbouring lanes read neighbouring addresses: four columns of a
// matrix per lane, four dimensions of a value per lane. Sums live in registers. A key is read by
// one lane, 16 bytes at a time, for kScoreRows queries at once.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/kernel.h"
#include "model/detmath.h"
#include "model/kernels.h"

namespace lockstep::model {

using kernels::Index;

inline constexpr Index kColumnsPerLane = 4;
inline constexpr Index kColumnsPerWarp = kWarpLanes * kColumnsPerLane;
inline constexpr Index kScoreRows = 8;     // queries that a unit scores against 32 keys
inline constexpr Index kValueRows = 4;     // queries for which a unit weighs values
inline constexpr Index kHeadRows = 2;      // tokens of a unit of the output projection
inline constexpr int kMostTreeLevels = 7;  // heads <= 64
inline constexpr Index kMostShards = 8;

struct alignas(16) Float4 {
  float at[4];
};

LOCKSTEP_HD bool is_aligned16(const float* address) {
  return reinterpret_cast<std::uintptr_t>(address) % sizeof(Float4) == 0;
}

// Up to four neighbouring floats; those from `count` on are 0.
LOCKSTEP_HD Float4 load4(const float* source, Index count, bool aligned) {
  if (aligned) return *reinterpret_cast<const Float4*>(source);
  Float4 result{};
  for (int i = 0; i < 4; ++i) result.at[i] = i < count ? source[i] : 0.0f;
  return result;
}

LOCKSTEP_HD void store4(float* target, const Float4& value, Index count, bool aligned) {
  if (aligned) {
    *reinterpret_cast<Float4*>(target) = value;
    return;
  }
  for (int i = 0; i < 4; ++i) {
    if (i < count) target[i] = value.at[i];
  }
}

constexpr Index tiles(Index count, Index tile) {
  return (count + tile - 1) / tile;
}

// Rows by token: of a plain array, or in the pages of a pool.
struct DeviceRows {
  float* base = nullptr;                 // of the array, or of row 0 of the pool at this layer
  const std::uint32_t* table = nullptr;  // page table from page 0 on; null: a plain array
  Index page = 1;                        // tokens
  Index row_floats = 0;                  // of the pool
  Index skip = 0;                        // floats of a page in front of these
  Index width = 0;                       // floats of a token

  LOCKSTEP_HD float* page_at(Index index) const { return base + table[index] * row_floats + skip; }
  LOCKSTEP_HD float* at(Index position) const {
    if (table == nullptr) return base + position * width;
    return page_at(position / page) + position % page * width;
  }
};

// Walks over positions in ascending order and looks a page up once.
class RowCursor {
 public:
  LOCKSTEP_HD explicit RowCursor(const DeviceRows& rows) : rows_(rows) {}
  LOCKSTEP_HD const float* at(Index position) {
    if (position >= end_) {
      const Index index = position / rows_.page;
      first_ = rows_.page_at(index);
      begin_ = index * rows_.page;
      end_ = begin_ + rows_.page;
    }
    return first_ + (position - begin_) * rows_.width;
  }

 private:
  const DeviceRows& rows_;
  const float* first_ = nullptr;
  Index begin_ = 0;
  Index end_ = 0;
};

// y = x / sqrt(mean(x^2) + eps) * weight / divisor, 32 strided lanes and their tree.
LOCKSTEP_HD void norm_row(const Warp& warp, const float* x, const float* weight, Index width,
                          float eps, float divisor, float* y) {
  Lanes<float> squares;
  warp.each([&](int lane) {
    float sum = 0.0f;
    for (Index k = lane; k < width; k += kWarpLanes) sum = detmath::fma(x[k], x[k], sum);
    squares[lane] = sum;
  });
  const float mean = warp.tree_sum<kWarpLanes>(squares) / static_cast<float>(width);
  const float scale = detmath::rsqrt(mean + eps);
  warp.each([&](int lane) {
    for (Index k = lane; k < width; k += kWarpLanes) {
      const float value = x[k] * scale * weight[k];
      y[k] = divisor == 1.0f ? value : value / divisor;
    }
  });
}

// Unit: a token.
struct EmbedKernel {
  static constexpr std::string_view kName = "embed";
  const float* embedding;
  const float* norm;     // null: the embedding as it is
  const float* adapter;  // null: none
  const std::uint32_t* tokens;
  Index width;
  float eps;
  float* hidden;

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const float* source = embedding + tokens[unit] * width;
    float* row = hidden + unit * width;
    if (norm != nullptr) norm_row(warp, source, norm, width, eps, 1.0f, row);
    warp.each([&](int lane) {
      for (Index k = lane; k < width; k += kWarpLanes) {
        const float value = norm != nullptr ? row[k] : source[k];
        row[k] = adapter != nullptr ? value + adapter[k] : value;
      }
    });
  }
};

// Unit: one head of one token, or a whole row where `heads` is 1.
struct NormKernel {
  static constexpr std::string_view kName = "norm";
  const float* x;
  const float* weight;
  Index weight_stride;  // from the weights of one head to the next; 0: all have the same
  Index heads;
  Index width;
  float eps;
  float divisor;
  Index start;  // position of the first token in `target`
  DeviceRows target;

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    norm_row(warp, x + unit * width, weight + unit % heads * weight_stride, width, eps, divisor,
             target.at(start + unit / heads) + unit % heads * width);
  }
};

// One fma chain over the inputs for kRows rows and four columns. `inputs` may be a part of a row of
// `stride` inputs.
template <Index kRows>
struct ColumnSums {
  float at[kRows][kColumnsPerLane] = {};

  LOCKSTEP_HD void add(const float* const* x, Index k, const Float4& weights) {
    for (Index r = 0; r < kRows; ++r) {
      for (Index c = 0; c < kColumnsPerLane; ++c) {
        at[r][c] = detmath::fma(x[r][k], weights.at[c], at[r][c]);
      }
    }
  }

  LOCKSTEP_HD void chain(const float* const* x, Index inputs, const float* weights, Index stride,
                         Index columns, bool aligned) {
    for (Index k = 0; k < inputs; ++k) {
      add(x, k, load4(weights + k * stride, columns, aligned));
    }
  }

  // The same where inputs, stride and addresses are multiples of four.
  LOCKSTEP_HD void chain_by_four(const float* const* x, Index inputs, const float* weights,
                                 Index stride) {
    for (Index k = 0; k < inputs; k += 4) {
      Float4 own[kRows];
      for (Index r = 0; r < kRows; ++r) own[r] = *reinterpret_cast<const Float4*>(x[r] + k);
      for (Index i = 0; i < 4; ++i) {
        const Float4 row = *reinterpret_cast<const Float4*>(weights + (k + i) * stride);
        for (Index r = 0; r < kRows; ++r) {
          for (Index c = 0; c < kColumnsPerLane; ++c) {
            at[r][c] = detmath::fma(own[r].at[i], row.at[c], at[r][c]);
          }
        }
      }
    }
  }
};

// y[row][j] = sum over k of x[row][k] * weights[k][j]. Unit: kRows rows and 128 columns.
template <Index kRows>
struct ProjectKernel {
  static constexpr std::string_view kName = "project";
  const float* x;
  Index x_stride;  // from one row to the next
  Index rows;
  Index inputs;
  const float* weights;
  Index outputs;
  float* y;

  Index units() const { return tiles(rows, kRows) * tiles(outputs, kColumnsPerWarp); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index column_tiles = (outputs + kColumnsPerWarp - 1) / kColumnsPerWarp;
    const Index first_row = unit / column_tiles * kRows;
    const Index first_column = unit % column_tiles * kColumnsPerWarp;
    const bool aligned = outputs % 4 == 0 && is_aligned16(weights) && is_aligned16(y);
    const bool by_four = aligned && inputs % 4 == 0 && x_stride % 4 == 0 && is_aligned16(x);
    warp.each([&](int lane) {
      const Index column = first_column + lane * kColumnsPerLane;
      if (column >= outputs) return;
      const float* own[kRows];  // rows beyond the last are computed and not stored
      for (Index r = 0; r < kRows; ++r) {
        own[r] = x + (first_row + r < rows ? first_row + r : rows - 1) * x_stride;
      }
      ColumnSums<kRows> sums;
      if (by_four) {
        sums.chain_by_four(own, inputs, weights + column, outputs);
      } else {
        sums.chain(own, inputs, weights + column, outputs, outputs - column, aligned);
      }
      for (Index r = 0; r < kRows; ++r) {
        if (first_row + r >= rows) continue;
        Float4 value;
        for (Index c = 0; c < kColumnsPerLane; ++c) value.at[c] = sums.at[r][c];
        store4(y + (first_row + r) * outputs + column, value, outputs - column, aligned);
      }
    });
  }
};

// project_heads() of model/kernels.h: one chain per head, the heads in a balanced tree. Unit:
// kHeadRows rows and 128 columns. REQUIRES: heads is a power of two, at most 64.
struct ProjectHeadsKernel {
  static constexpr std::string_view kName = "project.heads";
  const float* x;
  Index rows;
  Index heads;
  Index dim;
  const float* weights;
  Index outputs;
  float* y;

  Index units() const { return tiles(rows, kHeadRows) * tiles(outputs, kColumnsPerWarp); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index column_tiles = (outputs + kColumnsPerWarp - 1) / kColumnsPerWarp;
    const Index first_row = unit / column_tiles * kHeadRows;
    const Index first_column = unit % column_tiles * kColumnsPerWarp;
    warp.each([&](int lane) {
      const Index column = first_column + lane * kColumnsPerLane;
      if (column < outputs) run_lane(first_row, column);
    });
  }

 private:
  using Sums = ColumnSums<kHeadRows>;

  LOCKSTEP_HD static void add(const Sums& left, Sums& sums) {
    for (Index r = 0; r < kHeadRows; ++r) {
      for (Index c = 0; c < kColumnsPerLane; ++c) sums.at[r][c] = left.at[r][c] + sums.at[r][c];
    }
  }

  LOCKSTEP_HD void run_lane(Index first_row, Index column) const {
    const bool aligned = outputs % 4 == 0 && is_aligned16(weights) && is_aligned16(y);
    Sums pending[kMostTreeLevels];  // of 2^level heads, each waiting for its pair
    Sums sums;
    for (Index head = 0; head < heads; ++head) {
      const float* own[kHeadRows];
      for (Index r = 0; r < kHeadRows; ++r) {
        const Index row = first_row + r < rows ? first_row + r : rows - 1;
        own[r] = x + (row * heads + head) * dim;
      }
      sums = Sums{};
      const float* matrix = weights + head * dim * outputs + column;
      if (aligned && dim % 4 == 0 && is_aligned16(x)) {
        sums.chain_by_four(own, dim, matrix, outputs);
      } else {
        sums.chain(own, dim, matrix, outputs, outputs - column, aligned);
      }
      // Constant indices only, so that the levels stay in registers.
      bool carries = true;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int level = 0; level < kMostTreeLevels; ++level) {
        if (!carries) continue;
        if ((head >> level & 1) != 0) {
          add(pending[level], sums);
        } else {
          pending[level] = sums;
          carries = false;
        }
      }
    }
    for (Index r = 0; r < kHeadRows; ++r) {
      if (first_row + r >= rows) continue;
      Float4 value;
      for (Index c = 0; c < kColumnsPerLane; ++c) value.at[c] = sums.at[r][c];
      store4(y + (first_row + r) * outputs + column, value, outputs - column, aligned);
    }
  }
};

// convolve() over the inputs of a segment, with those of the tokens before it from the slot. Unit:
// one token and 128 channels.
struct ConvolveKernel {
  static constexpr std::string_view kName = "convolve";
  const float* state;   // [taps - 1][channels], oldest first
  const float* inputs;  // [tokens][channels]
  const float* weights;
  Index tokens;
  Index taps;
  Index channels;
  Index start;  // position of the first token in `target`
  DeviceRows target;
  bool adds;  // to what is there

  Index units() const { return tokens * tiles(channels, kColumnsPerWarp); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index channel_tiles = (channels + kColumnsPerWarp - 1) / kColumnsPerWarp;
    const Index token = unit / channel_tiles;
    float* row = target.at(start + token);
    const bool aligned = channels % 4 == 0 && is_aligned16(state) && is_aligned16(inputs) &&
                         is_aligned16(weights) && is_aligned16(row);
    warp.each([&](int lane) {
      const Index channel = unit % channel_tiles * kColumnsPerWarp + lane * kColumnsPerLane;
      const Index count = channels - channel;
      if (count <= 0) return;
      Float4 sum{};
      Float4 input{};
      for (Index tap = 0; tap < taps; ++tap) {
        const Index at = token + tap;  // counted over state and inputs
        const float* source =
            at < taps - 1 ? state + at * channels : inputs + (at - (taps - 1)) * channels;
        input = load4(source + channel, count, aligned);
        const Float4 weight = load4(weights + tap * channels + channel, count, aligned);
        for (int c = 0; c < 4; ++c) sum.at[c] = detmath::fma(weight.at[c], input.at[c], sum.at[c]);
      }
      Float4 value = adds ? load4(row + channel, count, aligned) : Float4{};
      for (int c = 0; c < 4; ++c) {
        const float output = sum.at[c] + input.at[c];
        value.at[c] = adds ? value.at[c] + output : output;
      }
      store4(row + channel, value, count, aligned);
    });
  }
};

// The state of the convolutions after `tokens` tokens of the segment. Unit: 32 channels of one
// convolution. `target` may be `source`.
struct SaveStateKernel {
  static constexpr std::string_view kName = "save.state";
  struct Part {
    const float* inputs = nullptr;  // [tokens of the segment][stride]
    Index stride = 0;
    Index channels = 0;
    Index offset = 0;  // of its rows in the layer's part of a slot, in floats
  };
  Part parts[4];
  int count;
  const float* source;  // the layer's part of the slot before the segment
  float* target;
  Index history;
  Index tokens;

  Index units_of(int part) const { return tiles(parts[part].channels, kWarpLanes); }
  Index units() const {
    Index sum = 0;
    for (int i = 0; i < count; ++i) sum += units_of(i);
    return sum;
  }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    int index = 0;
    Index tile = unit;
    for (; index + 1 < count; ++index) {
      const Index own = (parts[index].channels + kWarpLanes - 1) / kWarpLanes;
      if (tile < own) break;
      tile -= own;
    }
    const Part part = parts[index];
    warp.each([&](int lane) {
      const Index channel = tile * kWarpLanes + lane;
      if (channel >= part.channels) return;
      // Ascending, so that a row is read before it is overwritten.
      for (Index row = 0; row < history; ++row) {
        const Index at = tokens + row;  // counted over state and inputs
        const float value = at < history ? source[part.offset + at * part.channels + channel]
                                         : part.inputs[(at - history) * part.stride + channel];
        target[part.offset + row * part.channels + channel] = value;
      }
    });
  }
};

// What the three kernels of attention share: queries [start, start + count) of one segment against
// blocks of 16 positions from `first_block` on.
struct AttentionShape {
  Index heads;
  Index group;  // query heads per KV head
  Index dim;
  Index window;  // 0: every position below
  Index start;
  Index count;
  Index first_block;
  Index blocks;

  LOCKSTEP_HD Index first_visible(Index position) const {
    return window == 0 || position < window ? 0 : position - window + 1;
  }
  LOCKSTEP_HD bool sees(Index query, Index position) const {
    return position <= query && position >= first_visible(query);
  }
  LOCKSTEP_HD Index kv_heads() const { return heads / group; }
  LOCKSTEP_HD Index rows_per_kv_head() const { return count * group; }
  // Row r of a KV head: query r / group, and this head of all.
  LOCKSTEP_HD Index head_of(Index kv_head, Index row) const {
    return kv_head * group + row % group;
  }
  LOCKSTEP_HD float* scores_of(float* scores, Index query, Index head) const {
    return scores + (query * heads + head) * blocks * kernels::kBlock;
  }
};

// scores[query][head][position of the blocks]. Unit: kScoreRows rows of a KV head and two blocks.
struct ScoreKernel {
  static constexpr std::string_view kName = "attention.score";
  AttentionShape shape;
  const float* query;     // [count][heads][dim]
  const float* relative;  // [count][heads][components]
  const float* profiles;  // [components][extent], by distance
  Index components;
  Index extent;
  float scale;
  DeviceRows keys;
  float* scores;

  Index units() const {
    return shape.kv_heads() * tiles(shape.rows_per_kv_head(), kScoreRows) * tiles(shape.blocks, 2);
  }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index pairs = (shape.blocks + 1) / 2;
    const Index row_tiles = (shape.rows_per_kv_head() + kScoreRows - 1) / kScoreRows;
    const Index pair = unit % pairs;
    const Index first_row = unit / pairs % row_tiles * kScoreRows;
    const Index kv_head = unit / pairs / row_tiles;
    warp.each([&](int lane) {
      const Index column = pair * kWarpLanes + lane;
      if (column >= shape.blocks * kernels::kBlock) return;
      run_lane(kv_head, first_row, column);
    });
  }

 private:
  LOCKSTEP_HD void run_lane(Index kv_head, Index first_row, Index column) const {
    const Index position = shape.first_block * kernels::kBlock + column;
    const Index last_row = shape.rows_per_kv_head() - 1;
    // Beyond the last query there may be no page.
    const bool exists = position < shape.start + shape.count;
    const float* key = keys.at(exists ? position : shape.start) + kv_head * shape.dim;
    float dot[kScoreRows] = {};
    const float* own[kScoreRows];
    for (Index r = 0; r < kScoreRows; ++r) {
      const Index row = first_row + r < last_row ? first_row + r : last_row;
      own[r] = query + (row / shape.group * shape.heads + shape.head_of(kv_head, row)) * shape.dim;
    }
    for (Index d = 0; d < shape.dim; d += 4) {
      const Float4 element = *reinterpret_cast<const Float4*>(key + d);
      for (Index r = 0; r < kScoreRows; ++r) {
        const Float4 factor = *reinterpret_cast<const Float4*>(own[r] + d);
        for (int i = 0; i < 4; ++i) dot[r] = detmath::fma(factor.at[i], element.at[i], dot[r]);
      }
    }
    for (Index r = 0; r < kScoreRows; ++r) {
      const Index row = first_row + r;
      if (row > last_row) break;
      const Index head = shape.head_of(kv_head, row);
      const Index token = row / shape.group;
      const Index at = shape.start + token;
      float* target = shape.scores_of(scores, token, head) + column;
      *target = shape.sees(at, position)
                    ? dot[r] * scale + bias((token * shape.heads + head), at - position)
                    : kernels::kMaskedScore;
    }
  }

  LOCKSTEP_HD float bias(Index row, Index distance) const {
    float mixed = 0.0f;
    for (Index c = 0; c < components && distance < extent; ++c) {
      mixed = detmath::fma(relative[row * components + c], profiles[c * extent + distance], mixed);
    }
    return mixed;
  }
};

// Scores to weights, and their sums. Unit: one query and head.
struct WeighKernel {
  static constexpr std::string_view kName = "attention.weigh";
  AttentionShape shape;
  float* scores;
  float* sums;  // [count][heads]

  Index units() const { return shape.count * shape.heads; }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index position = shape.start + unit / shape.heads;
    const Index begin = shape.first_visible(position) / kernels::kBlock - shape.first_block;
    const Index end = position / kernels::kBlock + 1 - shape.first_block;
    const Index count = (end - begin) * kernels::kBlock;
    float* own = scores + unit * shape.blocks * kernels::kBlock + begin * kernels::kBlock;

    Lanes<float> most;
    warp.each([&](int lane) {
      float largest = kernels::kMaskedScore;
      for (Index i = lane; i < count; i += kWarpLanes) {
        largest = own[i] > largest ? own[i] : largest;
      }
      most[lane] = largest;
    });
    const float largest =
        warp.tree<kWarpLanes>(most, [](float a, float b) { return b > a ? b : a; });

    // Sixteen strided lanes: each takes its weight of the first block, then of the second.
    Lanes<float> sum;
    warp.each([&](int lane) { sum[lane] = 0.0f; });
    for (Index first = 0; first < count; first += kWarpLanes) {
      Lanes<float> weight;
      warp.each([&](int lane) {
        const Index i = first + lane;
        weight[lane] = i < count ? detmath::exp_neg(own[i] - largest) : 0.0f;
        if (i < count) own[i] = weight[lane];
      });
      const Lanes<float> second = warp.down(weight, static_cast<int>(kernels::kBlock));
      warp.each([&](int lane) {
        sum[lane] += weight[lane];
        sum[lane] += second[lane];
      });
    }
    const float total = warp.tree_sum<static_cast<int>(kernels::kBlock)>(sum);
    warp.each([&](int lane) {
      if (lane == 0) sums[unit] = total;
    });
  }
};

// output = sum over blocks of (weighted values, summed within the block first) / sum of weights.
// Unit: kValueRows rows of a KV head; a lane has four dimensions.
struct AccumulateKernel {
  static constexpr std::string_view kName = "attention.accumulate";
  AttentionShape shape;
  const float* weights;  // what WeighKernel left of the scores
  const float* sums;
  DeviceRows values;
  float* output;  // [count][heads][dim]

  Index units() const { return shape.kv_heads() * tiles(shape.rows_per_kv_head(), kValueRows); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    const Index row_tiles = (shape.rows_per_kv_head() + kValueRows - 1) / kValueRows;
    const Index kv_head = unit / row_tiles;
    const Index first_row = unit % row_tiles * kValueRows;
    warp.each([&](int lane) {
      const Index d = lane * 4;
      if (d < shape.dim) run_lane(kv_head, first_row, d);
    });
  }

 private:
  // A token that a row does not see has the weight 0, which changes no sum: none is ever -0 when it
  // is added to an output.
  LOCKSTEP_HD void run_lane(Index kv_head, Index first_row, Index d) const {
    const Index last_row = shape.rows_per_kv_head() - 1;
    Index position_of[kValueRows];
    const float* own[kValueRows];
    for (Index r = 0; r < kValueRows; ++r) {
      const Index row = first_row + r < last_row ? first_row + r : last_row;
      const Index token = row / shape.group;
      position_of[r] = shape.start + token;
      own[r] = weights +
               (token * shape.heads + shape.head_of(kv_head, row)) * shape.blocks * kernels::kBlock;
    }
    const Index origin = shape.first_block * kernels::kBlock;
    const Index end = position_of[kValueRows - 1] + 1;
    float total[kValueRows][4] = {};
    float sum[kValueRows][4] = {};
    RowCursor cursor(values);
    for (Index at = shape.first_visible(position_of[0]); at < end; ++at) {
      const Float4 value =
          *reinterpret_cast<const Float4*>(cursor.at(at) + kv_head * shape.dim + d);
      for (Index r = 0; r < kValueRows; ++r) {
        const float weight = shape.sees(position_of[r], at) ? own[r][at - origin] : 0.0f;
        for (int i = 0; i < 4; ++i) sum[r][i] = detmath::fma(weight, value.at[i], sum[r][i]);
      }
      if ((at + 1) % kernels::kBlock != 0 && at + 1 != end) continue;
      for (Index r = 0; r < kValueRows; ++r) {
        for (int i = 0; i < 4; ++i) {
          total[r][i] += sum[r][i];
          sum[r][i] = 0.0f;
        }
      }
    }
    for (Index r = 0; r < kValueRows; ++r) {
      const Index row = first_row + r;
      if (row > last_row) break;
      const Index index = row / shape.group * shape.heads + shape.head_of(kv_head, row);
      Float4 value;
      for (int i = 0; i < 4; ++i) value.at[i] = total[r][i] / sums[index];
      *reinterpret_cast<Float4*>(output + index * shape.dim + d) = value;
    }
  }
};

// y = silu(gate) * up. Unit: 128 elements.
struct GateKernel {
  static constexpr std::string_view kName = "gate";
  const float* gate;
  const float* up;
  Index count;
  float* y;

  Index units() const { return tiles(count, kColumnsPerWarp); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index first = unit * kColumnsPerWarp + lane * kColumnsPerLane;
      if (first >= count) return;
      const bool whole = first + kColumnsPerLane <= count;
      const Float4 a = load4(gate + first, count - first, whole);
      const Float4 b = load4(up + first, count - first, whole);
      Float4 value;
      for (int i = 0; i < 4; ++i) value.at[i] = detmath::silu(a.at[i]) * b.at[i];
      store4(y + first, value, count - first, whole);
    });
  }
};

// sum_tree() over what the shards left. Unit: 32 elements. REQUIRES: a power of two of shards.
struct SumTreeKernel {
  static constexpr std::string_view kName = "sum.tree";
  const float* parts[kMostShards];
  int count;
  Index width;
  float* y;

  Index units() const { return tiles(width, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index i = unit * kWarpLanes + lane;
      if (i >= width) return;
      float level[kMostShards];
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int p = 0; p < kMostShards; ++p) level[p] = p < count ? parts[p][i] : 0.0f;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int step = 1; step < kMostShards; step *= 2) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
        for (int p = 0; p + step < kMostShards; p += 2 * step) {
          if (p + step < count) level[p] = level[p] + level[p + step];
        }
      }
      y[i] = level[0];
    });
  }
};

// Turns the pairs (x[i], x[half + i]) of each head by its token's angles. Unit: 32 pairs.
struct RotateKernel {
  static constexpr std::string_view kName = "rotate";
  float* x;  // [tokens][heads][dim]
  Index tokens;
  Index heads;
  Index dim;
  Index half;
  const float* turns;  // [tokens][cosines, then sines][half]

  Index units() const { return tiles(tokens * heads * half, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index i = unit * kWarpLanes + lane;
      if (i >= tokens * heads * half) return;
      const Index row = i / half;  // token and head
      const float* turn = turns + row / heads * 2 * half + i % half;
      kernels::rotate_pair(turn[0], turn[half], x[row * dim + i % half],
                           x[row * dim + half + i % half]);
    });
  }
};

// Rows of tokens into pages. Unit: 32 elements.
struct PlaceKernel {
  static constexpr std::string_view kName = "place";
  const float* rows;  // [tokens][width]
  Index tokens;
  Index start;  // position of the first token
  DeviceRows target;

  Index units() const { return tiles(tokens * target.width, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index i = unit * kWarpLanes + lane;
      if (i >= tokens * target.width) return;
      target.at(start + i / target.width)[i % target.width] = rows[i];
    });
  }
};

// y = max(x, 0)^2. Unit: 32 elements.
struct SquaredReluKernel {
  static constexpr std::string_view kName = "squared.relu";
  const float* x;
  Index count;
  float* y;

  Index units() const { return tiles(count, kWarpLanes); }

  LOCKSTEP_HD void run(const Warp& warp, Index unit) const {
    warp.each([&](int lane) {
      const Index i = unit * kWarpLanes + lane;
      if (i < count) kernels::squared_relu(x + i, 1, y + i);
    });
  }
};

// The greedy choice, ties to the lowest id. One unit.
struct NextTokenKernel {
  static constexpr std::string_view kName = "next.token";
  const float* logits;
  Index vocab;
  std::uint32_t* token;

  struct Best {
    float value;
    std::uint32_t id;
  };

  LOCKSTEP_HD void run(const Warp& warp, Index) const {
    Lanes<float> value;
    Lanes<std::uint32_t> id;
    warp.each([&](int lane) {
      const Index first = lane < vocab ? lane : 0;
      value[lane] = logits[first];
      id[lane] = static_cast<std::uint32_t>(first);
      for (Index i = first + kWarpLanes; i < vocab; i += kWarpLanes) {
        if (!(logits[i] > value[lane])) continue;
        value[lane] = logits[i];
        id[lane] = static_cast<std::uint32_t>(i);
      }
    });
    for (int half = kWarpLanes / 2; half > 0; half /= 2) {
      const Lanes<float> other = warp.down(value, half);
      const Lanes<std::uint32_t> other_id = warp.down(id, half);
      warp.each([&](int lane) {
        const bool takes =
            other[lane] > value[lane] || (other[lane] == value[lane] && other_id[lane] < id[lane]);
        if (!takes) return;
        value[lane] = other[lane];
        id[lane] = other_id[lane];
      });
    }
    const std::uint32_t chosen = warp.first(id);
    warp.each([&](int lane) {
      if (lane == 0) *token = chosen;
    });
  }
};

}  // namespace lockstep::model
