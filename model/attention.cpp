#include "model/attention.h"

#include <type_traits>

#include "core/check.h"
#include "model/kernels.h"

namespace lockstep::model {
namespace {

using kernels::Index;
using kernels::kBlock;

// One tile, all heads, for one head size (config.cpp admits no other than those of attend()).
// Blocks are walked outermost, so that a block is brought into [dim][token] order once for all
// queries of the tile:
//
//   scores  [query][head][block of the tile's range][16], then weights in the same place
template <Index kDim>
class TiledAttention {
 public:
  TiledAttention(const AttentionTile& tile, PagedLayer<float>& keys, PagedLayer<float>& values,
                 std::vector<float>& scratch)
      : tile_(tile),
        heads_(tile.shape->heads),
        group_(tile.shape->heads / tile.shape->kv_heads),
        kv_heads_(tile.shape->kv_heads),
        keys_(keys),
        values_(values),
        first_(tile.first_visible(tile.start)),
        end_(tile.start + tile.count),
        first_block_(first_ / kBlock),
        blocks_((end_ - 1) / kBlock + 1 - first_block_) {
    const Index scores = tile.count * heads_ * blocks_ * kBlock;
    const Index packed = kv_heads_ * kDim * kBlock;
    scratch.resize(std::max<std::size_t>(scratch.size(), scores + packed));
    scores_ = scratch.data();
    packed_ = scratch.data() + scores;
  }

  void run() {
    for (Index block = 0; block < blocks_; ++block) score(block);
    for (Index query = 0; query < tile_.count; ++query) weigh(query);
    for (Index block = 0; block < blocks_; ++block) accumulate(block);
    for (Index query = 0; query < tile_.count; ++query) divide(query);
  }

 private:
  using Values = std::conditional_t<kDim % 8 == 0, Pack8, Pack4>;

  struct Range {
    Index begin;
    Index end;
    bool empty() const { return begin >= end; }
  };

  Index block_start(Index block) const { return (first_block_ + block) * kBlock; }

  // The tokens of a block that a query sees, counted from the block's first.
  Range visible(Index query, Index block) const {
    const Index position = tile_.start + query;
    const Index start = block_start(block);
    return {std::max<Index>(0, tile_.first_visible(position) - start),
            std::min<Index>(kBlock, position + 1 - start)};
  }

  // The blocks that hold what a query sees.
  Range blocks_of(Index query) const {
    const Index position = tile_.start + query;
    return {tile_.first_visible(position) / kBlock - first_block_,
            position / kBlock + 1 - first_block_};
  }

  float* scores(Index query, Index head, Index block) {
    return scores_ + ((query * heads_ + head) * blocks_ + block) * kBlock;
  }

  // Keys of a block as [kv head][dim][token]; 0 for tokens that no query of the tile sees.
  void pack_keys(Index block) {
    const Index start = block_start(block);
    for (Index i = 0; i < kBlock; ++i) {
      const bool seen = start + i >= first_ && start + i < end_;
      const float* key = seen ? keys_.at(start + i) : nullptr;
      for (Index d = 0; d < kv_heads_ * kDim; ++d) packed_[d * kBlock + i] = seen ? key[d] : 0.0f;
    }
  }

  void score(Index block) {
    pack_keys(block);
    const Index components = tile_.shape->relative_dim;
    for (Index query = 0; query < tile_.count; ++query) {
      const Range range = visible(query, block);
      if (range.empty()) continue;
      const Index position = tile_.start + query;
      const float* profiles =
          components > 0 ? tile_.bias->from(position, block_start(block)) : nullptr;
      const kernels::BlockBias bias{profiles, tile_.bias->stride(), components};
      for (Index head = 0; head < heads_; ++head) {
        const Index row = query * heads_ + head;
        kernels::score_block<Pack8, kDim>(tile_.query + row * kDim,
                                          packed_ + head / group_ * kDim * kBlock, tile_.scale,
                                          tile_.relative + row * components, bias, range.begin,
                                          range.end, scores(query, head, block));
      }
    }
  }

  void weigh(Index query) {
    const Range range = blocks_of(query);
    for (Index head = 0; head < heads_; ++head) {
      float* output = tile_.output + (query * heads_ + head) * kDim;
      std::fill(output, output + kDim, 0.0f);
      const float sum =
          kernels::weigh(scores(query, head, range.begin), (range.end - range.begin) * kBlock);
      sums_.push_back(sum);
    }
  }

  void accumulate(Index block) {
    const Index start = block_start(block);
    const float* values[kBlock] = {};
    for (Index i = 0; i < kBlock; ++i) {
      if (start + i >= first_ && start + i < end_) values[i] = values_.at(start + i);
    }
    for (Index query = 0; query < tile_.count; ++query) {
      const Range range = visible(query, block);
      if (range.empty()) continue;
      for (Index head = 0; head < heads_; ++head) {
        kernels::accumulate_block<Values, kDim>(scores(query, head, block), values,
                                                head / group_ * kDim, range.begin, range.end,
                                                tile_.output + (query * heads_ + head) * kDim);
      }
    }
  }

  void divide(Index query) {
    for (Index head = 0; head < heads_; ++head) {
      const Index row = query * heads_ + head;
      float* output = tile_.output + row * kDim;
      for (Index d = 0; d < kDim; ++d) output[d] /= sums_[row];
    }
  }

  const AttentionTile& tile_;
  Index heads_;
  Index group_;  // query heads per KV head
  Index kv_heads_;
  PagedLayer<float>& keys_;
  PagedLayer<float>& values_;
  Index first_;  // positions [first_, end_) are seen by some query
  Index end_;
  Index first_block_;
  Index blocks_;
  float* scores_ = nullptr;
  float* packed_ = nullptr;
  std::vector<float> sums_;  // [query][head]
};

template <Index kDim>
void attend_with(const AttentionTile& tile, PagedLayer<float>& keys, PagedLayer<float>& values,
                 std::vector<float>& scratch) {
  TiledAttention<kDim>(tile, keys, values, scratch).run();
}

}  // namespace

BiasTable::BiasTable(const std::vector<float>& profiles, std::int64_t components,
                     std::int64_t extent)
    : extent_(extent),
      stride_(extent + 2 * (kBlock - 1)),
      table_(static_cast<std::size_t>(components * stride_)) {
  for (std::int64_t row = 0; row < components; ++row) {
    for (std::int64_t distance = 0; distance < extent; ++distance) {
      table_[row * stride_ + kBlock - 1 + extent - 1 - distance] =
          profiles[row * extent + distance];
    }
  }
}

const float* BiasTable::from(std::int64_t query, std::int64_t position) const {
  const std::int64_t column = kBlock - 1 + extent_ - 1 - (query - position);
  return column < 0 ? nullptr : table_.data() + column;
}

void attend(const AttentionTile& tile, PagedLayer<float> keys, PagedLayer<float> values,
            std::vector<float>& scratch) {
  struct Case {
    std::int64_t head_dim;
    void (*run)(const AttentionTile&, PagedLayer<float>&, PagedLayer<float>&, std::vector<float>&);
  };
  constexpr Case kCases[] = {{4, attend_with<4>},   {8, attend_with<8>},   {16, attend_with<16>},
                             {32, attend_with<32>}, {64, attend_with<64>}, {128, attend_with<128>}};
  for (const Case& known : kCases) {
    if (known.head_dim == tile.shape->head_dim) known.run(tile, keys, values, scratch);
  }
}

}  // namespace lockstep::model
