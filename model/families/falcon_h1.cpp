#include "model/families/families.h"

namespace lockstep::model {
namespace {

// What config.json multiplies the results of projections with.
struct Multipliers {
  EndFactors ends;
  AttentionFactors attention;
  float mamba_in = 1;
  float mamba_out = 1;
  std::vector<float> mamba = std::vector<float>(5, 1.0f);
  std::vector<float> mlp = {1, 1};
};

Multipliers read_multipliers(JsonFields& fields) {
  Multipliers read;
  const auto one = [&](const char* key, float& value) { fields.real(key, -1e6, 1e6, value); };
  one("embedding_multiplier", read.ends.embedding);
  one("lm_head_multiplier", read.ends.head);
  one("attention_in_multiplier", read.attention.input);
  one("key_multiplier", read.attention.key);
  one("attention_out_multiplier", read.attention.output);
  one("ssm_in_multiplier", read.mamba_in);
  one("ssm_out_multiplier", read.mamba_out);
  fields.reals("ssm_multipliers", -1e6, 1e6, read.mamba);
  fields.reals("mlp_multipliers", -1e6, 1e6, read.mlp);
  return read;
}

void read_mamba2_shape(JsonFields& fields, ModelConfig& config) {
  Mamba2Shape& mamba2 = config.shape.mamba2;
  std::int64_t chunk = 256;
  std::int64_t channels = 0;
  fields.number("mamba_n_heads", 1, kMaxWidth, mamba2.heads);
  fields.number("mamba_d_ssm", 1, kMaxWidth, channels);
  if (mamba2.heads > 0) mamba2.head_dim = channels / mamba2.heads;
  fields.number("mamba_d_head", 1, kMaxHeadDim, mamba2.head_dim);
  fields.number("mamba_d_state", 1, kMaxHeadDim, mamba2.state);
  fields.number("mamba_n_groups", 1, kMaxWidth, mamba2.groups);
  fields.number("mamba_d_conv", 2, kMaxConvWidth, config.conv_width);
  fields.number("mamba_chunk_size", 1, kMaxTokens, chunk);
  mamba2.conv_bias = true;
  fields.boolean("mamba_conv_bias", mamba2.conv_bias);
  fields.boolean("mamba_rms_norm", mamba2.norm);
  // Without a norm there is no order.
  if (mamba2.norm) fields.only("mamba_norm_before_gate", false);
  fields.only("mamba_proj_bias", false);
  read_no_limits(fields);
  fields.ignore({"mamba_expand", "mamba_norm_before_gate"});
  config.state_chunk = Tokens{chunk};
}

}  // namespace

Result<void> read_falcon_h1(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  DecoderShape& shape = config.shape;
  std::int64_t count = 0;
  bool tied = false;
  read_common(fields, config);
  fields.number("num_hidden_layers", 1, static_cast<std::int64_t>(kMaxLayers), count);
  read_rope(fields, 1, shape);
  read_mamba2_shape(fields, config);
  const Multipliers multipliers = read_multipliers(fields);
  fields.real("rms_norm_eps", 1e-12, 1, shape.norm_eps);
  fields.boolean("tie_word_embeddings", tied);
  for (const char* key : {"attention_bias", "mlp_bias", "projectors_bias"}) fields.only(key, false);
  fields.only("hidden_act", "silu");
  config.layers.assign(static_cast<std::size_t>(count), Mixer::full_mamba2);
  shape.embedding_norm = shape.convolutions = shape.head_norms = false;
  shape.root_scale = true;
  config.window = Tokens{1};
  if (const Result<void> good = check_read(fields, config); !good) return good;

  Weights& weights = checkpoint.weights;
  read_ends(tensors, config, "model.embed_tokens.weight", tied, weights, multipliers.ends);
  weights.final_norm = tensors.values("model.final_layernorm.weight", {shape.hidden});
  Mamba2Factors factors;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    factors[i] = multipliers.mamba_in * multipliers.mamba[i];
  }
  MlpNames names;
  names.gate_factor = multipliers.mlp[0];
  names.down_factor = multipliers.mlp[1];
  for (std::size_t i = 0; i < config.layers.size() && !tensors.failed(); ++i) {
    const std::string prefix = layer_prefix("model.layers.", i);
    LayerWeights layer;
    layer.input_norm = tensors.values(prefix + "input_layernorm.weight", {shape.hidden});
    layer.mlp_norm = tensors.values(prefix + "pre_ff_layernorm.weight", {shape.hidden});
    read_projections(tensors, prefix + "self_attn.", shape, "o_proj.weight", layer,
                     multipliers.attention);
    layer.recurrent =
        read_mamba2_mixer(tensors, prefix + "mamba.", config, factors, multipliers.mamba_out);
    layer.mlp =
        read_mlp(tensors, prefix + "feed_forward.", shape.hidden, shape.intermediate, names);
    weights.layers.push_back(std::move(layer));
  }
  return tensors.finish();
}

}  // namespace lockstep::model
