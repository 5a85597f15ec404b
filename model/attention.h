// Attention of neighbouring tokens of one sequence over its pages, on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/paged.h"

namespace lockstep::model {

// A layer's bias profiles as score_block() reads them: by ascending position of the key, with
// zeros before the farthest distance and after distance 0.
class BiasTable {
 public:
  // `profiles` is [components][extent], by distance.
  BiasTable(const std::vector<float>& profiles, std::int64_t components, std::int64_t extent);

  // The profiles from the key at `position` on, for the query at `query`; null if neither that key
  // nor the next 15 have a bias. REQUIRES: position <= query.
  const float* from(std::int64_t query, std::int64_t position) const;
  std::int64_t stride() const { return stride_; }

 private:
  std::int64_t extent_;
  std::int64_t stride_;
  std::vector<float> table_;
};

struct AttentionTile {
  const DecoderShape* shape = nullptr;
  const BiasTable* bias = nullptr;
  float scale = 0;                  // of q.k
  std::int64_t window = 0;          // 0: every token below
  std::int64_t start = 0;           // position of the first query
  std::int64_t count = 0;           // queries
  const float* query = nullptr;     // [count][heads][head_dim]
  const float* relative = nullptr;  // [count][heads][relative_dim]
  float* output = nullptr;          // [count][heads][head_dim]

  // The first position that the query at `position` sees.
  std::int64_t first_visible(std::int64_t position) const {
    return window == 0 ? 0 : std::max<std::int64_t>(0, position - window + 1);
  }
};

// REQUIRES: the keys and values of all positions that the queries see have been written.
// `scratch` grows as needed and may be used for the next tile.
void attend(const AttentionTile& tile, PagedLayer<float> keys, PagedLayer<float> values,
            std::vector<float>& scratch);

}  // namespace lockstep::model
