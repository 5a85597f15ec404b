#include <algorithm>

#include "model/families/families.h"

namespace lockstep::model {
namespace {

LayerWeights read_lfm2_layer(TensorReader& tensors, const ModelConfig& config, LayerId id) {
  const DecoderShape& shape = config.shape;
  const std::string prefix = layer_prefix("model.layers.", id.index());
  LayerWeights layer;
  layer.input_norm = tensors.values(prefix + "operator_norm.weight", {shape.hidden});
  layer.mlp_norm = tensors.values(prefix + "ffn_norm.weight", {shape.hidden});
  layer.mlp = read_mlp(tensors, prefix + "feed_forward.", shape.hidden, shape.intermediate,
                       {"w1.weight", "w3.weight", "w2.weight"});
  if (config.recurrent(id)) {
    RecurrentWeights& mixer = layer.recurrent;
    mixer.in = tensors.matrix(prefix + "conv.in_proj.weight", {3 * shape.hidden, shape.hidden});
    mixer.conv = tensors.convolution(prefix + "conv.conv.weight", shape.hidden, config.conv_width);
    mixer.out = tensors.matrix(prefix + "conv.out_proj.weight", {shape.hidden, shape.hidden});
    return layer;
  }
  const std::string attention = prefix + "self_attn.";
  read_projections(tensors, attention, shape, "out_proj.weight", layer);
  layer.query_norm = tensors.values(attention + "q_layernorm.weight", {shape.head_dim});
  layer.key_norm = tensors.values(attention + "k_layernorm.weight", {shape.head_dim});
  return layer;
}

// layer_types, or the indices of the layers with attention.
void read_lfm2_layers(JsonFields& fields, ModelConfig& config) {
  constexpr LayerName kNames[] = {{"conv", Mixer::shortconv}, {"full_attention", Mixer::full}};
  std::int64_t count = 0;
  config.layers = read_layers(fields, "layer_types", kNames, count);
  std::vector<std::int64_t> full;
  fields.numbers("full_attn_idxs", 0, static_cast<std::int64_t>(kMaxLayers), full);
  for (std::int64_t i = 0; config.layers.size() < static_cast<std::size_t>(count); ++i) {
    config.layers.push_back(std::ranges::count(full, i) > 0 ? Mixer::full : Mixer::shortconv);
  }
}

// The MLP's width that config.json means: two thirds, times a factor, rounded up.
void adjust_width(JsonFields& fields, DecoderShape& shape) {
  bool adjust = true;
  float factor = 1;
  std::int64_t multiple = 256;
  fields.number("block_ff_dim", 1, kMaxWidth, shape.intermediate);
  fields.boolean("block_auto_adjust_ff_dim", adjust);
  fields.real("block_ffn_dim_multiplier", 0, 1e3, factor);
  fields.number("block_multiple_of", 1, kMaxWidth, multiple);
  if (!adjust) return;
  const std::int64_t two_thirds = 2 * shape.intermediate / 3;
  const auto wide = static_cast<std::int64_t>(factor * static_cast<float>(two_thirds));
  shape.intermediate = (wide + multiple - 1) / multiple * multiple;
}

}  // namespace

Result<void> read_lfm2(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  DecoderShape& shape = config.shape;
  bool tied = true;
  read_common(fields, config);
  adjust_width(fields, shape);
  read_lfm2_layers(fields, config);
  read_rope(fields, 1, shape);
  fields.number("conv_L_cache", 2, kMaxConvWidth, config.conv_width);
  fields.real("norm_eps", 1e-12, 1, shape.norm_eps);
  fields.boolean("tie_word_embeddings", tied);
  fields.boolean("tie_embedding", tied);
  fields.only("conv_bias", false);
  shape.embedding_norm = shape.convolutions = false;
  shape.root_scale = true;
  config.window = config.state_chunk = Tokens{1};
  if (const Result<void> good = check_read(fields, config); !good) return good;

  Weights& weights = checkpoint.weights;
  read_ends(tensors, config, "model.embed_tokens.weight", tied, weights);
  weights.final_norm = tensors.values("model.embedding_norm.weight", {shape.hidden});
  for (std::uint32_t i = 0; i < config.layers.size() && !tensors.failed(); ++i) {
    weights.layers.push_back(read_lfm2_layer(tensors, config, LayerId{i}));
  }
  return tensors.finish();
}

}  // namespace lockstep::model
