#include "model/decoder.h"

#include <algorithm>
#include <string>

#include "core/check.h"
#include "model/decoder_layer.h"
#include "model/kernels.h"

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

Decoder::Decoder(const ModelConfig& config, std::uint64_t weight_seed)
    : Model(config, describe(config) + " weights=" + std::to_string(weight_seed)),
      numbers_{config, draw_weights(config, weight_seed)} {
  const Bytes kv = kFloat * shape().kv_width();
  const Bytes conv{conv_state_bytes(shape(), config.conv_width)};
  for (std::uint32_t i = 0; i < layers().size(); ++i) {
    const LayerId layer{i};
    const bool full = layers()[i].attention == Attention::full;
    const Component component = full ? Component::full : Component::swa;
    declare({component, layer, Part::kv, kv});  // K of the whole page, then
    declare({component, layer, Part::kv, kv});  // V of the whole page
    declare({Component::mamba, layer, Part::conv, conv});
    bias_.emplace_back(numbers_.weights.layers[i].profiles, shape().relative_dim,
                       config.bias_extent(layer));
  }
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
    norm_rows(embedding, 1, width, numbers_.weights.embedding_norm, shape().norm_eps, row);
    for (std::size_t i = 0; i < adapter.size(); ++i) row[i] += adapter[i];
    row += width;
  }
}

void Decoder::run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                        std::span<std::byte> activations) const {
  const std::size_t i = layer.index();
  LayerPlan plan;
  plan.layer = layer;
  plan.attention = layers()[i].attention;
  plan.window = plan.attention == Attention::swa ? geometry().window.value() : 0;
  plan.taps = numbers_.config.conv_width;
  plan.shape = &shape();
  plan.weights = &numbers_.weights.layers[i];
  plan.bias = &bias_[i];
  run_decoder_layer(plan, segment, memory, floats(activations));
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
