// One rank's part of a decoder whose heads are split over ranks (model.md): its own heads of
// queries, keys and values, with their rows of the output projection. Everything else is whole on
// every rank.
//
//   query heads   | 0 1 2 3 | 4 5 6 7 |      8 heads, 4 kv heads, 2 ranks
//   kv heads      |  0   1  |  2   3  |
//
// The output projection sums heads in a balanced tree. A rank's heads are a subtree of it, because
// both numbers are powers of two: each rank computes the root of its own, and every rank then
// combines the roots. So the bits are those of one rank.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "model/weights.h"

namespace lockstep::model {

struct Shard {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
};

// REQUIRES of all: shard.count divides the KV heads of every layer.
DecoderShape shard_of(const DecoderShape& whole, Shard shard);
// `config` is the whole model's.
Weights shard_of(Weights whole, const ModelConfig& config, Shard shard);

}  // namespace lockstep::model
