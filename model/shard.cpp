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

// The columns of what a mixer projects, in order; a shard has its part of those of heads.
struct Columns {
  std::int64_t count;
  bool of_heads = true;
  bool convolved = false;
};

std::vector<Columns> projected_columns(const DecoderShape& shape, Mixer mixer) {
  const Mamba2Shape& mamba2 = shape.mamba2;
  const DeltaShape& delta = shape.delta;
  if (mixer == Mixer::mamba2) {  // z, x, B, C, dt
    const std::int64_t shared = mamba2.groups * mamba2.state;
    return {{mamba2.channels()},
            {mamba2.channels(), true, true},
            {shared, true, true},
            {shared, true, true},
            {mamba2.heads}};
  }
  std::vector<Columns> columns{{delta.key_width(), true, true},
                               {delta.key_width(), true, true},
                               {delta.value_width(), true, true}};
  if (mixer == Mixer::gdn) {  // z, b, a
    columns.insert(columns.end(), {{delta.value_width()}, {delta.value_heads}});
    columns.push_back({delta.value_heads});
  } else {  // b, and what decay and gate are projected from
    columns.insert(columns.end(), {{delta.value_heads}, {delta.rank, false}});
    columns.push_back({delta.rank, false});
  }
  return columns;
}

// Those of them that the shard has.
std::vector<ColumnRange> own_columns(const std::vector<Columns>& columns, Shard shard) {
  std::vector<ColumnRange> ranges;
  std::int64_t first = 0;
  for (const Columns& some : columns) {
    const std::int64_t own = some.of_heads ? some.count / shard.count : some.count;
    ranges.push_back({first + (some.of_heads ? shard.index * own : 0), own});
    first += some.count;
  }
  return ranges;
}

std::vector<float> columns(const std::vector<float>& matrix, std::int64_t rows,
                           const std::vector<ColumnRange>& ranges) {
  const auto width = static_cast<std::int64_t>(matrix.size()) / rows;
  std::vector<float> part;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const ColumnRange& range : ranges) {
      const auto first = matrix.begin() + row * width + range.first;
      part.insert(part.end(), first, first + range.count);
    }
  }
  return part;
}

RecurrentWeights shard_of(const RecurrentWeights& whole, const ModelConfig& config, Mixer mixer,
                          Shard shard) {
  const DecoderShape& shape = config.shape;
  const std::vector<ColumnRange> channels = recurrent_channels(shape, mixer, shard);
  RecurrentWeights part;
  part.in = columns(whole.in, shape.hidden, own_columns(projected_columns(shape, mixer), shard));
  part.conv = columns(whole.conv, config.conv_width, channels);
  if (!whole.conv_bias.empty()) part.conv_bias = columns(whole.conv_bias, 1, channels);
  part.a_log = rows(whole.a_log, shard);
  part.dt_bias = rows(whole.dt_bias, shard);
  part.skip = rows(whole.skip, shard);
  if (mixer == Mixer::kda) {
    part.decay = columns(whole.decay, shape.delta.rank, shard);
    part.gate = columns(whole.gate, shape.delta.rank, shard);
  }
  part.norm = mixer == Mixer::mamba2 ? rows(whole.norm, shard) : whole.norm;
  part.out = rows(whole.out, shard);
  return part;
}

}  // namespace

bool shares_recurrent(const DecoderShape& whole, Mixer layer, std::uint32_t count) {
  switch (layer) {
    case Mixer::mamba2:
      return whole.mamba2.groups % count == 0;
    case Mixer::gdn:
    case Mixer::kda:
      return whole.delta.key_heads % count == 0;
    default:
      return false;
  }
}

std::vector<ColumnRange> recurrent_channels(const DecoderShape& whole, Mixer mixer, Shard shard) {
  std::vector<Columns> convolved = projected_columns(whole, mixer);
  std::erase_if(convolved, [](const Columns& columns) { return !columns.convolved; });
  return own_columns(convolved, shard);
}

DecoderShape shard_of(const DecoderShape& whole, Mixer layer, Shard shard) {
  DecoderShape part = whole;
  if (shares_recurrent(whole, layer, shard.count)) {
    if (layer == Mixer::mamba2) {
      part.mamba2.heads /= shard.count;
      part.mamba2.groups /= shard.count;
    } else {
      part.delta.key_heads /= shard.count;
      part.delta.value_heads /= shard.count;
    }
  }
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
  for (std::size_t i = 0; i < whole.layers.size(); ++i) {
    LayerWeights& layer = whole.layers[i];
    if (shares_recurrent(shape, config.layers[i], shard.count)) {
      layer.recurrent = shard_of(layer.recurrent, config, config.layers[i], shard);
      continue;  // no attention
    }
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
