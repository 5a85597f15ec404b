#include "model/decoder.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "model/decoder_layer.h"
#include "model/recurrent.h"

namespace lockstep::model {
namespace {

constexpr Bytes kFloat{sizeof(float)};

template <class Byte>
auto floats(std::span<Byte> bytes) {
  using Float = std::conditional_t<std::is_const_v<Byte>, const float, float>;
  CHECK("decoder.aligned", reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0);
  return std::span<Float>(reinterpret_cast<Float*>(bytes.data()), bytes.size() / sizeof(float));
}

}  // namespace

Decoder::Decoder(const ModelConfig& config, Weights weights, const std::string& weights_name,
                 Shard shard)
    : Model(config, describe(config) + " weights=" + weights_name, shard),
      numbers_{config, shard_of(std::move(weights), config, shard)} {
  numbers_.config.shape = shard_of(config.shape, Mixer::full, shard);
  if (shape().rotary_dim > 0) rope_.emplace(shape().rotary_dim, shape().rope_theta);
  for (std::uint32_t i = 0; i < layers().size(); ++i) {
    const LayerId layer{i};
    const DecoderShape whole = config.shape_of(layer);
    CHECK("decoder.shard", whole.kv_heads % shard.count == 0);
    shapes_.push_back(shard_of(whole, config.layers[i], shard));
    shares_.push_back(shares_recurrent(whole, config.layers[i], shard.count));
    declare_layer(layer, whole, shard);
    const std::vector<float>& profiles = numbers_.weights.layers[i].profiles;
    bias_.emplace_back(profiles, shape().relative_dim,
                       profiles.empty() ? 0 : config.bias_extent(layer));
  }
}

void Decoder::declare_layer(LayerId layer, const DecoderShape& whole, Shard shard) {
  const LayerShape& kind = layers()[layer.index()];
  if (kind.attention != Attention::none) declare_pages(layer, whole, shard);
  if (numbers_.config.recurrent(layer)) {
    declare_recurrent(layer, whole, shard);
  } else if (kind.recurrent) {
    declare_convolutions(layer, whole, shard);
  }
}

void Decoder::declare_pages(LayerId layer, const DecoderShape& whole, Shard shard) {
  const Bytes kv = kFloat * shapes_[layer.index()].kv_width();
  const Bytes whole_kv = kFloat * whole.kv_width();
  const WholeEntry token{whole_kv, {{kv * shard.index, kv}}};
  const bool full = layers()[layer.index()].attention == Attention::full;
  const Component component = full ? Component::full : Component::swa;
  declare({component, layer, Part::kv, kv}, token);  // K of the whole page, then
  declare({component, layer, Part::kv, kv}, token);  // V of the whole page
}

void Decoder::declare_recurrent(LayerId layer, const DecoderShape& whole, Shard shard) {
  const Mixer mixer = *numbers_.config.recurrent(layer);
  const std::int64_t taps = numbers_.config.conv_width;
  const RecurrentState own = recurrent_state(shapes_[layer.index()], mixer, taps);
  const RecurrentState all = recurrent_state(whole, mixer, taps);
  WholeEntry temporal{kFloat * all.temporal, {{{}, kFloat * all.temporal}}};
  WholeEntry conv{kFloat * all.conv, {{{}, kFloat * all.conv}}};
  if (shares_[layer.index()]) {
    temporal.ranges = {{kFloat * (shard.index * own.temporal), kFloat * own.temporal}};
    conv.ranges.clear();
    const std::int64_t row = all.conv / (taps - 1);
    for (std::int64_t first = 0; first < all.conv; first += row) {
      for (const ColumnRange& range : recurrent_channels(whole, mixer, shard)) {
        conv.ranges.push_back({kFloat * (first + range.first), kFloat * range.count});
      }
    }
  }
  if (own.temporal > 0) {
    declare({Component::mamba, layer, Part::temporal, kFloat * own.temporal}, temporal);
  }
  declare({Component::mamba, layer, Part::conv, kFloat * own.conv}, conv);
}

void Decoder::declare_convolutions(LayerId layer, const DecoderShape& whole, Shard shard) {
  const DecoderShape& own = shapes_[layer.index()];
  const Bytes kv = kFloat * own.kv_width();
  const Bytes whole_kv = kFloat * whole.kv_width();
  const std::int64_t history = numbers_.config.conv_width - 1;
  const Bytes conv{conv_state_bytes(own, numbers_.config.conv_width)};
  const Bytes replicated = kFloat * (2 * history * whole.hidden);
  WholeEntry slot{Bytes{conv_state_bytes(whole, numbers_.config.conv_width)}, {}};
  for (std::int64_t row = 0; row < 2 * history; ++row) {  // K's inputs, then V's
    slot.ranges.push_back({whole_kv * row + kv * shard.index, kv});
  }
  slot.ranges.push_back({whole_kv * (2 * history), replicated});
  declare({Component::mamba, layer, Part::conv, conv}, slot);
}

bool Decoder::splits_into(std::size_t ranks) const {
  for (std::uint32_t i = 0; i < shapes_.size(); ++i) {
    if (shapes_[i].kv_heads % static_cast<std::int64_t>(ranks) != 0) return false;
  }
  return true;
}

Bytes Decoder::activation_bytes() const {
  return kFloat * shape().hidden;
}

Bytes Decoder::output_bytes() const {
  return kFloat * vocab();
}

void Decoder::embed(const Segment& segment, std::span<std::byte> activations) const {
  const std::span<float> hidden = floats(activations);
  const std::int64_t width = shape().hidden;
  CHECK("decoder.activations", hidden.size() == segment.tokens.size() * width);
  const std::vector<float> adapter =
      segment.extra_key ? numbers_.weights.adapter(*segment.extra_key) : std::vector<float>();
  float* row = hidden.data();
  for (const TokenId token : segment.tokens) {
    const float* embedding = numbers_.weights.embedding.data() + token.value() * width;
    if (shape().embedding_norm) {
      norm_rows(embedding, 1, width, numbers_.weights.embedding_norm, shape().norm_eps, row);
    } else {
      std::copy(embedding, embedding + width, row);
    }
    for (std::size_t i = 0; i < adapter.size(); ++i) row[i] += adapter[i];
    row += width;
  }
}

LayerPlan Decoder::plan(LayerId layer) const {
  const std::size_t i = layer.index();
  LayerPlan plan;
  plan.layer = layer;
  plan.attention = layers()[i].attention;
  plan.window = plan.attention == Attention::swa ? geometry().window.value() : 0;
  plan.recurrent = numbers_.config.recurrent(layer);
  plan.taps = numbers_.config.conv_width;
  plan.shape = &shapes_[i];
  plan.weights = &numbers_.weights.layers[i];
  plan.bias = &bias_[i];
  plan.rope = rope_ ? &*rope_ : nullptr;
  plan.mlp = numbers_.config.mlp(layer);
  plan.shares_recurrent = shares_[i];
  return plan;
}

void Decoder::run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                        std::span<std::byte> activations) const {
  run_decoder_layer(plan(layer), segment, memory, floats(activations));
}

void Decoder::run_heads(LayerId layer, const Segment& segment, const Memory& memory,
                        std::span<const std::byte> activations,
                        std::span<std::byte> partial) const {
  run_decoder_heads(plan(layer), segment, memory, floats(activations), floats(partial));
}

void Decoder::combine_heads(LayerId layer, const Segment& segment, const Memory& memory,
                            std::span<const std::span<const std::byte>> partials,
                            std::span<std::byte> activations) const {
  std::vector<std::span<const float>> roots;
  for (const std::span<const std::byte> partial : partials) roots.push_back(floats(partial));
  combine_decoder_heads(plan(layer), segment, memory, roots, floats(activations));
}

void Decoder::head(const Segment& segment, std::span<const std::byte> activations,
                   std::span<std::byte> outputs) const {
  const std::span<const float> hidden = floats(activations);
  const std::span<float> logits = floats(outputs);
  const std::int64_t width = shape().hidden;
  CHECK("decoder.outputs", logits.size() == segment.tokens.size() * vocab());
  std::vector<float> normed(static_cast<std::size_t>(width));
  for (std::size_t row = 0; row < segment.tokens.size(); ++row) {
    norm_rows(hidden.data() + row * width, 1, width, numbers_.weights.final_norm, shape().norm_eps,
              normed.data());
    for (float& value : normed) value /= shape().logit_divisor;
    project_rows(normed.data(), 1, width, numbers_.weights.head, vocab(),
                 logits.data() + row * vocab());
  }
}

TokenId Decoder::next_token(std::span<const std::byte> output) const {
  const std::span<const float> logits = floats(output);
  const auto largest = std::ranges::max_element(logits);
  return TokenId{static_cast<std::uint32_t>(largest - logits.begin())};
}

void Decoder::clear_slot(std::span<std::byte> slot) const {
  std::ranges::fill(slot, std::byte{0});
}

}  // namespace lockstep::model
