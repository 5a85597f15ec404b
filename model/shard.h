// One rank's part of a decoder whose heads are split over ranks (model.md): its own heads of
// queries, keys and values, with their rows of the output projection; in a recurrent layer its own
// heads of the mixer. Everything else is whole on every rank.
//
//   query heads   | 0 1 2 3 | 4 5 6 7 |      8 heads, 4 kv heads, 2 ranks
//   kv heads      |  0   1  |  2   3  |
//
// The output projection sums heads in a balanced tree. A rank's heads are a subtree of it, because
// both numbers are powers of two: each rank computes the root of its own, and every rank then
// combines the roots. So the bits are those of one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace lockstep::model {

struct Shard {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

// Whether ranks share the heads of a layer's recurrent mixer. Else every rank has all of it: where
// a norm or a key head would span ranks, beside attention, and in short convolutions, which have no
// heads. `whole` is the shape of the layer in the whole model.
bool shares_recurrent(const DecoderShape& whole, Mixer layer, std::uint32_t count);

// REQUIRES of all: shard.count divides the KV heads of every layer.
DecoderShape shard_of(const DecoderShape& whole, Mixer layer, Shard shard);
// `config` is the whole model's.
Weights shard_of(Weights whole, const ModelConfig& config, Shard shard);

// Neighbouring columns of a matrix, or channels of a convolution.
struct ColumnRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
// The channels of the mixer's convolution that the shard has. REQUIRES: it shares the heads.
std::vector<ColumnRange> recurrent_channels(const DecoderShape& whole, Mixer mixer, Shard shard);

}  // namespace lockstep::model
