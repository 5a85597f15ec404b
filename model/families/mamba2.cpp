#include "model/families/families.h"

namespace lockstep::model {

Result<void> read_mamba2(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  DecoderShape& shape = config.shape;
  Mamba2Shape& mamba2 = shape.mamba2;
  std::int64_t count = 0;
  std::int64_t chunk = 256;
  bool tied = false;
  read_common(fields, config);
  fields.number("num_hidden_layers", 1, static_cast<std::int64_t>(kMaxLayers), count);
  fields.number("num_heads", 1, kMaxWidth, mamba2.heads);
  fields.number("head_dim", 1, kMaxHeadDim, mamba2.head_dim);
  fields.number("state_size", 1, kMaxHeadDim, mamba2.state);
  fields.number("n_groups", 1, kMaxWidth, mamba2.groups);
  fields.boolean("use_conv_bias", mamba2.conv_bias);
  mamba2.norm = true;
  fields.number("conv_kernel", 2, kMaxConvWidth, config.conv_width);
  fields.number("chunk_size", 1, kMaxTokens, chunk);
  fields.real("layer_norm_epsilon", 1e-12, 1, shape.norm_eps);
  fields.boolean("tie_word_embeddings", tied);
  fields.only("use_bias", false);
  fields.only("hidden_act", "silu");
  read_no_limits(fields);
  fields.ignore({"expand", "residual_in_fp32"});
  config.layers.assign(static_cast<std::size_t>(count), Mixer::mamba2);
  config.mlps.assign(static_cast<std::size_t>(count), Mlp::none);
  shape.embedding_norm = shape.convolutions = false;
  config.window = Tokens{1};
  config.state_chunk = Tokens{chunk};
  if (const Result<void> good = check_read(fields, config); !good) return good;

  Weights& weights = checkpoint.weights;
  read_ends(tensors, config, "backbone.embeddings.weight", tied, weights);
  weights.final_norm = tensors.values("backbone.norm_f.weight", {shape.hidden});
  for (std::size_t i = 0; i < config.layers.size() && !tensors.failed(); ++i) {
    const std::string prefix = layer_prefix("backbone.layers.", i);
    LayerWeights layer;
    layer.input_norm = tensors.values(prefix + "norm.weight", {shape.hidden});
    layer.recurrent = read_mamba2_mixer(tensors, prefix + "mixer.", config);
    weights.layers.push_back(std::move(layer));
  }
  return tensors.finish();
}

}  // namespace lockstep::model
