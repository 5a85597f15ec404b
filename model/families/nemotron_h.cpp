#include <algorithm>
#include <iterator>

#include "model/families/families.h"

namespace lockstep::model {
namespace {

enum class Block { mamba2, attention, mlp, experts };

// A layer of the file is a mixer or an MLP; here an MLP belongs to the mixer before it.
struct Blocks {
  std::vector<Block> blocks;
  std::vector<std::size_t> mixers;  // of each layer here: the block that is its mixer
};

Blocks read_nemotron_blocks(JsonFields& fields, ModelConfig& config) {
  struct Name {
    std::string_view name;
    std::string_view letter;  // in hybrid_override_pattern
    Block block;
  };
  constexpr Name kNames[] = {{"linear_attention", "M", Block::mamba2},
                             {"full_attention", "*", Block::attention},
                             {"mlp", "-", Block::mlp},
                             {"moe", "E", Block::experts}};
  std::vector<std::string> types;
  std::string pattern;
  fields.texts("layers_block_type", types);
  fields.text("hybrid_override_pattern", pattern);
  const bool letters = types.empty();
  for (std::size_t i = 0; letters && i < pattern.size(); ++i) types.push_back(pattern.substr(i, 1));
  Blocks read;
  for (const std::string& type : types) {
    const Name* known = std::ranges::find(kNames, type, letters ? &Name::letter : &Name::name);
    if (known == std::end(kNames)) {
      fields.refuse("layers_block_type", "\"" + type + "\" is not supported");
      return {};
    }
    const Block block = known->block;
    if (block == Block::mamba2 || block == Block::attention) {
      read.mixers.push_back(read.blocks.size());
      config.layers.push_back(block == Block::mamba2 ? Mixer::mamba2 : Mixer::full);
      config.mlps.push_back(Mlp::none);
    } else if (config.mlps.empty() || config.mlps.back() != Mlp::none) {
      fields.refuse("layers_block_type", "only an MLP behind a mixer is supported");
      return {};
    } else {
      config.mlps.back() = block == Block::mlp ? Mlp::dense : Mlp::experts;
    }
    read.blocks.push_back(block);
  }
  return read;
}

void read_nemotron_shapes(JsonFields& fields, ModelConfig& config, float& scale) {
  Mamba2Shape& mamba2 = config.shape.mamba2;
  ExpertShape& experts = config.shape.experts;
  std::int64_t chunk = 128;
  std::int64_t shared = 1;
  fields.number("mamba_num_heads", 1, kMaxWidth, mamba2.heads);
  fields.number("mamba_head_dim", 1, kMaxHeadDim, mamba2.head_dim);
  fields.number("ssm_state_size", 1, kMaxHeadDim, mamba2.state);
  fields.number("n_groups", 1, kMaxWidth, mamba2.groups);
  fields.number("conv_kernel", 2, kMaxConvWidth, config.conv_width);
  fields.number("chunk_size", 1, kMaxTokens, chunk);
  fields.boolean("use_conv_bias", mamba2.conv_bias);
  mamba2.norm = true;
  config.state_chunk = Tokens{chunk};
  experts.score = RouterScore::sigmoid;
  experts.shared_weight = SharedWeight::one;
  experts.shared = 1;
  fields.number("n_routed_experts", 1, kMaxExperts, experts.routed);
  fields.number("num_experts_per_tok", 1, kMaxExperts, experts.chosen);
  fields.number("moe_intermediate_size", 1, kMaxWidth, experts.width);
  fields.number("moe_shared_expert_intermediate_size", 1, kMaxWidth, experts.shared_width);
  fields.number("n_shared_experts", 1, 1, shared);
  fields.real("routed_scaling_factor", 0, 1e6, scale);
  fields.only("norm_topk_prob", true);
  fields.only("n_group", 1);
  fields.only("topk_group", 1);
  fields.only("moe_latent_size", nullptr);
}

ExpertWeights read_nemotron_experts(TensorReader& tensors, const std::string& prefix,
                                    const DecoderShape& shape, float scale, const MlpNames& names) {
  const ExpertShape& experts = shape.experts;
  ExpertWeights weights;
  weights.scale = scale;
  weights.router = tensors.matrix(prefix + "gate.weight", {experts.routed, shape.hidden});
  weights.choice_bias = tensors.values(prefix + "gate.e_score_correction_bias", {experts.routed});
  for (std::int64_t i = 0; i < experts.routed && !tensors.failed(); ++i) {
    const std::string own = prefix + "experts." + std::to_string(i) + ".";
    weights.routed.push_back(read_mlp(tensors, own, shape.hidden, experts.width, names));
  }
  weights.shared.push_back(
      read_mlp(tensors, prefix + "shared_experts.", shape.hidden, experts.shared_width, names));
  return weights;
}

}  // namespace

Result<void> read_nemotron_h(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  DecoderShape& shape = config.shape;
  float scale = 1;
  bool tied = false;
  read_common(fields, config);
  const Blocks blocks = read_nemotron_blocks(fields, config);
  read_nemotron_shapes(fields, config, scale);
  fields.real("layer_norm_epsilon", 1e-12, 1, shape.norm_eps);
  fields.boolean("tie_word_embeddings", tied);
  fields.only("mlp_hidden_act", "relu2");
  fields.only("mamba_hidden_act", "silu");
  fields.only("sliding_window", nullptr);
  fields.only("num_nextn_predict_layers", 0);
  for (const char* key : {"attention_bias", "mlp_bias", "use_bias", "mamba_proj_bias"}) {
    fields.only(key, false);
  }
  read_no_limits(fields);
  fields.ignore({"expand", "residual_in_fp32", "use_mamba_kernels", "mamba_ssm_cache_dtype",
                 "moe_shared_expert_overlap", "mtp_layers_block_type", "num_hidden_layers"});
  shape.embedding_norm = shape.convolutions = shape.head_norms = false;
  shape.root_scale = true;
  shape.activation = Activation::squared_relu;
  config.window = Tokens{1};
  if (const Result<void> good = check_read(fields, config); !good) return good;

  Weights& weights = checkpoint.weights;
  read_ends(tensors, config, "backbone.embeddings.weight", tied, weights);
  weights.final_norm = tensors.values("backbone.norm_f.weight", {shape.hidden});
  MlpNames names;
  names.gate = "";
  for (std::size_t i = 0; i < config.layers.size() && !tensors.failed(); ++i) {
    const std::string mixer = layer_prefix("backbone.layers.", blocks.mixers[i]);
    const std::string mlp = layer_prefix("backbone.layers.", blocks.mixers[i] + 1);
    LayerWeights layer;
    layer.input_norm = tensors.values(mixer + "norm.weight", {shape.hidden});
    if (config.layers[i] == Mixer::mamba2) {
      layer.recurrent = read_mamba2_mixer(tensors, mixer + "mixer.", config);
    } else {
      read_projections(tensors, mixer + "mixer.", shape, "o_proj.weight", layer);
    }
    if (config.mlps[i] != Mlp::none) {
      layer.mlp_norm = tensors.values(mlp + "norm.weight", {shape.hidden});
    }
    if (config.mlps[i] == Mlp::dense) {
      layer.mlp = read_mlp(tensors, mlp + "mixer.", shape.hidden, shape.intermediate, names);
    } else if (config.mlps[i] == Mlp::experts) {
      layer.experts = read_nemotron_experts(tensors, mlp + "mixer.", shape, scale, names);
    }
    weights.layers.push_back(std::move(layer));
  }
  return tensors.finish();
}

}  // namespace lockstep::model
