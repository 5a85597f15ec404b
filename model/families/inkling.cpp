#include "model/families/families.h"

#include <algorithm>

namespace lockstep::model {
namespace {

constexpr std::int64_t kInklingStateChunk =
    64;  // tokens between states that engines keep of this family

void read_inkling_attention_shape(JsonFields& fields, ModelConfig& config) {
  DecoderShape& shape = config.shape;
  std::int64_t window = 512;
  HeadShape swa{shape.heads, shape.kv_heads, shape.head_dim};
  fields.number("swa_num_attention_heads", 1, kMaxWidth, swa.heads);
  fields.number("swa_num_key_value_heads", 1, kMaxWidth, swa.kv_heads);
  fields.number("swa_head_dim", 1, kMaxWidth, swa.head_dim);
  const bool same =
      swa.heads == shape.heads && swa.kv_heads == shape.kv_heads && swa.head_dim == shape.head_dim;
  if (!same) shape.swa_heads = swa;
  fields.number("sliding_window_size", 1, kMaxTokens, window);
  config.window = Tokens{window};
  fields.number("d_rel", 1, kMaxWidth, shape.relative_dim);
  fields.number("rel_extent", 1, kMaxTokens, shape.full_extent);
  fields.number("log_scaling_n_floor", 1, kMaxTokens, shape.scaling_from);
  float strength = 0.1f;
  fields.real("log_scaling_alpha", 0, 1e3, strength);
  if (shape.scaling_from > 0) shape.scaling_strength = strength;
}

void read_inkling_layer_kinds(JsonFields& fields, ModelConfig& config) {
  constexpr LayerName kNames[] = {{"hybrid_sliding", Mixer::swa}, {"hybrid", Mixer::full}};
  std::int64_t count = 0;
  config.layers = read_layers(fields, "layer_types", kNames, count);
  std::vector<std::int64_t> local;
  fields.numbers("local_layer_ids", 0, static_cast<std::int64_t>(kMaxLayers), local);
  if (config.layers.empty()) {
    for (std::int64_t i = 0; i < count; ++i) {
      const bool sliding = local.empty() ? (i + 1) % 6 != 0 : std::ranges::count(local, i) > 0;
      config.layers.push_back(sliding ? Mixer::swa : Mixer::full);
    }
  }
  std::vector<std::string> mlps(config.layers.size(), "sparse");
  fields.texts("mlp_layer_types", mlps);
  for (const std::string& kind : mlps) {
    if (kind != "dense" && kind != "sparse") fields.refuse("mlp_layer_types", "found " + kind);
    config.mlps.push_back(kind == "dense" ? Mlp::dense : Mlp::experts);
  }
  if (config.mlps.size() != config.layers.size()) {
    fields.refuse("mlp_layer_types", "expected one of each layer");
  }
}

void read_inkling_expert_shape(JsonFields& fields, DecoderShape& shape, float& scale) {
  ExpertShape& experts = shape.experts;
  experts.score = RouterScore::sigmoid;
  experts.shared_weight = SharedWeight::scored;
  fields.number("n_routed_experts", 1, kMaxExperts, experts.routed);
  fields.number("num_experts_per_tok", 1, kMaxExperts, experts.chosen);
  fields.number("n_shared_experts", 1, kMaxExperts, experts.shared);
  fields.number("moe_intermediate_size", 1, kMaxWidth, experts.width);
  // Some files call the experts' width intermediate_size, and have the other one's beside it.
  std::int64_t dense = 0;
  fields.number("dense_intermediate_size", 1, kMaxWidth, dense);
  if (dense != 0) {
    experts.width = shape.intermediate;
    shape.intermediate = dense;
  }
  experts.shared_width = experts.width;
  fields.real("route_scale", 0, 1e6, scale);
  fields.only("shared_expert_sink", true);
}

ExpertWeights read_inkling_experts(TensorReader& tensors, const std::string& prefix,
                                   const DecoderShape& shape, float scale) {
  const ExpertShape& experts = shape.experts;
  const std::int64_t width = experts.width;
  ExpertWeights weights;
  weights.router =
      tensors.matrix(prefix + "gate.weight", {experts.routed + experts.shared, shape.hidden});
  weights.choice_bias = tensors.values(prefix + "gate.e_score_correction_bias", {experts.routed});
  const std::vector<float> global = tensors.values(prefix + "gate.global_scale", {1}, scale);
  if (!global.empty()) weights.scale = global[0];
  // All experts of one kind lie in one tensor.
  const auto part = [&](const std::string& name, std::int64_t count, std::int64_t rows,
                        std::int64_t inputs, TensorRows range) {
    return tensors.matrix(prefix + name, {count, rows, inputs}, {&range, 1});
  };
  for (std::int64_t i = 0; i < experts.routed && !tensors.failed(); ++i) {
    MlpWeights mlp;
    const std::int64_t first = i * 2 * width;
    const std::int64_t middle = first + width;
    mlp.gate =
        part("experts.gate_up_proj", experts.routed, 2 * width, shape.hidden, {first, middle});
    mlp.up = part("experts.gate_up_proj", experts.routed, 2 * width, shape.hidden,
                  {middle, middle + width});
    mlp.down = part("experts.down_proj", experts.routed, shape.hidden, width,
                    {i * shape.hidden, (i + 1) * shape.hidden});
    weights.routed.push_back(std::move(mlp));
  }
  for (std::int64_t i = 0; i < experts.shared && !tensors.failed(); ++i) {
    const TensorRows own{i * width, (i + 1) * width};
    MlpWeights mlp;
    mlp.gate = part("shared_experts.gate_proj", experts.shared, width, shape.hidden, own);
    mlp.up = part("shared_experts.up_proj", experts.shared, width, shape.hidden, own);
    mlp.down = part("shared_experts.down_proj", experts.shared, shape.hidden, width,
                    {i * shape.hidden, (i + 1) * shape.hidden});
    weights.shared.push_back(std::move(mlp));
  }
  return weights;
}

LayerWeights read_inkling_layer(TensorReader& tensors, const ModelConfig& config, LayerId id,
                                float scale) {
  const DecoderShape shape = config.shape_of(id);
  const std::string prefix = layer_prefix("model.layers.", id.index());
  const std::string attention = prefix + "self_attn.";
  LayerWeights layer;
  layer.input_norm = tensors.values(prefix + "input_layernorm.weight", {shape.hidden});
  read_projections(tensors, attention, shape, "o_proj.weight", layer);
  layer.relative =
      tensors.matrix(attention + "r_proj.weight", {shape.relative_width(), shape.hidden});
  layer.query_norm = tensors.values(attention + "q_norm.weight", {shape.head_dim});
  layer.key_norm = tensors.values(attention + "k_norm.weight", {shape.head_dim});
  layer.profiles = tensors.values(attention + "rel_logits_proj.proj",
                                  {shape.relative_dim, config.bias_extent(id)});
  layer.key_conv =
      tensors.convolution(attention + "k_sconv.conv1d.weight", shape.kv_width(), config.conv_width);
  layer.value_conv =
      tensors.convolution(attention + "v_sconv.conv1d.weight", shape.kv_width(), config.conv_width);
  layer.attention_conv =
      tensors.convolution(prefix + "attn_sconv.conv1d.weight", shape.hidden, config.conv_width);
  layer.mlp_conv =
      tensors.convolution(prefix + "mlp_sconv.conv1d.weight", shape.hidden, config.conv_width);
  layer.mlp_norm = tensors.values(prefix + "post_attention_layernorm.weight", {shape.hidden});
  if (config.mlp(id) == Mlp::experts) {
    layer.experts = read_inkling_experts(tensors, prefix + "mlp.", shape, scale);
    return layer;
  }
  layer.mlp = read_mlp(tensors, prefix + "mlp.", shape.hidden, shape.intermediate);
  // The scale of the output, in the last projection.
  const std::vector<float> scales = tensors.values(prefix + "mlp.global_scale", {1});
  for (float& weight : layer.mlp.down) weight *= scales.empty() ? 1.0f : scales[0];
  return layer;
}

// Forgets the tokens from `count` on.
void keep_tokens(std::int64_t count, Checkpoint& checkpoint) {
  const std::int64_t before = checkpoint.config.vocab;
  Weights& weights = checkpoint.weights;
  std::vector<float> head;
  for (std::int64_t k = 0; k < checkpoint.config.shape.hidden; ++k) {
    const auto row = weights.head.begin() + k * before;
    head.insert(head.end(), row, row + count);
  }
  weights.head = std::move(head);
  weights.embedding.resize(static_cast<std::size_t>(count * checkpoint.config.shape.hidden));
  checkpoint.config.vocab = count;
}

}  // namespace

Result<void> read_inkling(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  float scale = 1;
  std::int64_t shown = 0;
  read_common(fields, config);
  read_inkling_attention_shape(fields, config);
  read_inkling_layer_kinds(fields, config);
  read_inkling_expert_shape(fields, config.shape, scale);
  config.conv_width = 4;
  fields.number("conv_kernel_size", 1, kMaxConvWidth, config.conv_width);
  fields.number("sconv_kernel_size", 1, kMaxConvWidth, config.conv_width);
  fields.real("rms_norm_eps", 1e-12, 1, config.shape.norm_eps);
  fields.real("logits_mup_width_multiplier", 1e-6, 1e6, config.shape.logit_divisor);
  fields.number("unpadded_vocab_size", 2, std::max<std::int64_t>(2, config.vocab), shown);
  fields.only("hidden_act", "silu");
  fields.only("tie_word_embeddings", false);
  fields.only("num_mtp_layers", 0);
  fields.ignore({"number_of_conv_states", "rms_norm_eps_moe_gate", "model_max_length",
                 "chain_hidden_post_norm", "mtp_hidden_states_first", "mtp_local_layer_ids"});
  config.state_chunk = Tokens{kInklingStateChunk};
  if (const Result<void> good = check_read(fields, config); !good) return good;

  Weights& weights = checkpoint.weights;
  read_ends(tensors, config, "model.embed_tokens.weight", false, weights);
  weights.embedding_norm =
      tensors.values("model.embed_tokens.embed_norm.weight", {config.shape.hidden});
  weights.final_norm = tensors.values("model.norm.weight", {config.shape.hidden});
  for (std::uint32_t i = 0; i < config.layers.size() && !tensors.failed(); ++i) {
    weights.layers.push_back(read_inkling_layer(tensors, config, LayerId{i}, scale));
  }
  const Result<void> good = tensors.finish();
  // The last rows of a padded head are no tokens.
  if (good && shown != 0) keep_tokens(shown, checkpoint);
  return good;
}

}  // namespace lockstep::model
