#include "model/shard.h"

#include <algorithm>

namespace lockstep::model {

namespace {

// The shard's part of the columns of a matrix of `rows`.
std::vector<float> columns(const std::vector<float>& matrix, std::int64_t rows, Shard shard) {
  const auto width = static_cast<std::int64_t>(matrix.size()) / rows;
  const std::int64_t own = width / shard.count;
  std::vector<float> part;
  part.reserve(static_cast<std::size_t>(rows * own));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto first = matrix.begin() + row * width + shard.index * own;
    part.insert(part.end(), first, first + own);
  }
  return part;
}

// The shard's part of the rows.
std::vector<float> rows(const std::vector<float>& matrix, Shard shard) {
  const auto own = static_cast<std::ptrdiff_t>(matrix.size()) / shard.count;
  const auto first = matrix.begin() + shard.index * own;
  return {first, first + own};
}

}  // namespace

DecoderShape shard_of(const DecoderShape& whole, Shard shard) {
  DecoderShape part = whole;
  part.heads /= shard.count;
  part.kv_heads /= shard.count;
  if (part.swa_heads) {
    part.swa_heads->heads /= shard.count;
    part.swa_heads->kv_heads /= shard.count;
  }
  return part;
}

Weights shard_of(Weights whole, const ModelConfig& config, Shard shard) {
  if (shard.count == 1) return whole;
  const DecoderShape& shape = config.shape;
  const std::int64_t inputs = shape.latent.rank > 0 ? shape.latent.width() : shape.hidden;
  for (LayerWeights& layer : whole.layers) {
    layer.query = columns(layer.query, shape.hidden, shard);
    layer.relative = columns(layer.relative, shape.hidden, shard);
    layer.gate = columns(layer.gate, shape.hidden, shard);
    layer.key = columns(layer.key, inputs, shard);
    layer.value = columns(layer.value, inputs, shard);
    layer.key_conv = columns(layer.key_conv, config.conv_width, shard);
    layer.value_conv = columns(layer.value_conv, config.conv_width, shard);
    layer.output = rows(layer.output, shard);
  }
  return whole;
}

}  // namespace lockstep::model
