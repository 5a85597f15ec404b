#include <algorithm>

#include "model/families/families.h"

namespace lockstep::model {
namespace {

constexpr std::int64_t kKimiStateChunk = 64;  // tokens of a chunk of the public kernels
constexpr float kLatentEps = 1e-6f;           // whatever rms_norm_eps says

void read_kda(TensorReader& tensors, const std::string& prefix, const ModelConfig& config,
              RecurrentWeights& mixer) {
  const DecoderShape& shape = config.shape;
  const DeltaShape& delta = shape.delta;
  const std::int64_t width = delta.value_width();
  const auto matrix = [&](const char* name, std::int64_t outputs, std::int64_t inputs) {
    return tensors.matrix(prefix + name, {outputs, inputs});
  };
  const auto convolution = [&](const char* name) {
    return tensors.convolution(prefix + name, width, config.conv_width);
  };
  mixer.in = beside(shape.hidden, {matrix("q_proj.weight", width, shape.hidden),
                                   matrix("k_proj.weight", width, shape.hidden),
                                   matrix("v_proj.weight", width, shape.hidden),
                                   matrix("b_proj.weight", delta.value_heads, shape.hidden),
                                   matrix("f_a_proj.weight", delta.rank, shape.hidden),
                                   matrix("g_a_proj.weight", delta.rank, shape.hidden)});
  mixer.conv =
      beside(config.conv_width, {convolution("q_conv1d.weight"), convolution("k_conv1d.weight"),
                                 convolution("v_conv1d.weight")});
  mixer.decay = matrix("f_b_proj.weight", width, delta.rank);
  mixer.gate = matrix("g_b_proj.weight", width, delta.rank);
  mixer.a_log = tensors.values(prefix + "A_log", {1, 1, delta.value_heads, 1});
  mixer.dt_bias = tensors.values(prefix + "dt_bias", {width});
  mixer.norm = tensors.values(prefix + "o_norm.weight", {delta.value_dim});
  mixer.out = matrix("o_proj.weight", shape.hidden, width);
}

// Keys and values of all heads from one latent vector; a part of each key is the same for all heads
// and comes from the hidden state.
void read_latent_attention(TensorReader& tensors, const std::string& prefix,
                           const DecoderShape& shape, LayerWeights& layer) {
  const LatentShape& latent = shape.latent;
  const std::int64_t own = shape.head_dim - latent.shared;  // of a key, from the latent
  const std::int64_t stride = own + shape.head_dim;
  std::vector<TensorRows> keys;
  std::vector<TensorRows> values;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    keys.push_back({head * stride, head * stride + own});
    values.push_back({head * stride + own, (head + 1) * stride});
  }
  const TensorShape both{shape.heads * stride, latent.rank};
  layer.query = tensors.matrix(prefix + "q_proj.weight", {shape.query_width(), shape.hidden});
  layer.latent =
      tensors.matrix(prefix + "kv_a_proj_with_mqa.weight", {latent.width(), shape.hidden});
  layer.latent_norm = tensors.values(prefix + "kv_a_layernorm.weight", {latent.rank});
  const std::vector<float> key = tensors.matrix(prefix + "kv_b_proj.weight", both, keys);
  layer.value = tensors.matrix(prefix + "kv_b_proj.weight", both, values);
  layer.output = tensors.matrix(prefix + "o_proj.weight", {shape.hidden, shape.query_width()});
  if (tensors.failed()) return;
  // The shared elements reach the keys by ones in the matrix, and no value.
  layer.value.resize(static_cast<std::size_t>(latent.width() * shape.kv_width()));
  layer.key.resize(layer.value.size());
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    for (std::int64_t r = 0; r < latent.rank; ++r) {
      std::copy_n(key.begin() + (r * shape.heads + head) * own, own,
                  layer.key.begin() + r * shape.kv_width() + head * shape.head_dim);
    }
    for (std::int64_t i = 0; i < latent.shared; ++i) {
      layer.key[(latent.rank + i) * shape.kv_width() + head * shape.head_dim + own + i] = 1.0f;
    }
  }
}

ExpertWeights read_kimi_experts(TensorReader& tensors, const std::string& prefix,
                                const DecoderShape& shape, float scale) {
  const ExpertShape& experts = shape.experts;
  ExpertWeights weights;
  weights.scale = scale;
  weights.router = tensors.matrix(prefix + "gate.weight", {experts.routed, shape.hidden});
  weights.choice_bias = tensors.values(prefix + "gate.e_score_correction_bias", {experts.routed});
  for (std::int64_t i = 0; i < experts.routed && !tensors.failed(); ++i) {
    weights.routed.push_back(read_mlp(tensors, prefix + "experts." + std::to_string(i) + ".",
                                      shape.hidden, experts.width,
                                      {"w1.weight", "w3.weight", "w2.weight"}));
  }
  if (experts.shared == 0) return weights;
  weights.shared.push_back(
      read_mlp(tensors, prefix + "shared_experts.", shape.hidden, experts.shared_width));
  return weights;
}

LayerWeights read_kimi_layer(TensorReader& tensors, const ModelConfig& config, LayerId id,
                             float scale) {
  const DecoderShape& shape = config.shape;
  const std::string prefix = layer_prefix("model.layers.", id.index());
  LayerWeights layer;
  layer.input_norm = tensors.values(prefix + "input_layernorm.weight", {shape.hidden});
  layer.mlp_norm = tensors.values(prefix + "post_attention_layernorm.weight", {shape.hidden});
  if (config.recurrent(id)) {
    read_kda(tensors, prefix + "self_attn.", config, layer.recurrent);
  } else {
    read_latent_attention(tensors, prefix + "self_attn.", shape, layer);
  }
  if (config.mlp(id) == Mlp::experts) {
    layer.experts = read_kimi_experts(tensors, prefix + "block_sparse_moe.", shape, scale);
    return layer;
  }
  // transformers writes the name of the experts for dense layers too.
  const bool plain = tensors.has(prefix + "mlp.up_proj.weight");
  layer.mlp = read_mlp(tensors, prefix + (plain ? "mlp." : "block_sparse_moe."), shape.hidden,
                       shape.intermediate);
  return layer;
}

// What released files say of the KDA layers, in an object of their own; layers count from 1.
void read_kimi_linear_config(JsonFields& fields, std::int64_t count, ModelConfig& config) {
  const Json* object = fields.value("linear_attn_config");
  if (object == nullptr) return;
  if (object->as<Json::Object>() == nullptr) {
    return fields.refuse("linear_attn_config", "expected an object");
  }
  JsonFields nested(*object, fields.source() + ": /linear_attn_config");
  DeltaShape& delta = config.shape.delta;
  nested.number("num_heads", 1, kMaxWidth, delta.value_heads);
  nested.number("head_dim", 1, kMaxHeadDim, delta.key_dim);
  nested.number("short_conv_kernel_size", 2, kMaxConvWidth, config.conv_width);
  std::vector<std::int64_t> full;
  std::vector<std::int64_t> kda;
  nested.numbers("full_attn_layers", 1, count, full);
  nested.numbers("kda_layers", 1, count, kda);
  if (const Result<void> good = nested.finish(); !good) return fields.fail(good.error());
  if (!config.layers.empty()) return;  // layer_types says it
  for (std::int64_t layer = 1; layer <= count; ++layer) {
    const bool is_full = std::ranges::count(full, layer) > 0;
    if (is_full == (std::ranges::count(kda, layer) > 0)) {
      return fields.refuse("linear_attn_config",
                           "layer " + std::to_string(layer) + " must be in one of the two lists");
    }
    config.layers.push_back(is_full ? Mixer::full : Mixer::kda);
  }
}

void read_kimi_layer_kinds(JsonFields& fields, ModelConfig& config) {
  constexpr LayerName kNames[] = {{"linear_attention", Mixer::kda},
                                  {"full_attention", Mixer::full}};
  std::int64_t count = 0;
  config.layers = read_layers(fields, "layer_types", kNames, count);
  read_kimi_linear_config(fields, count, config);
  std::vector<std::string> mlps;
  std::int64_t dense = 1;
  fields.texts("mlp_layer_types", mlps);
  fields.number("first_k_dense_replace", 0, static_cast<std::int64_t>(kMaxLayers), dense);
  fields.only("moe_layer_freq", 1);
  for (std::int64_t i = 0; mlps.size() < config.layers.size() && i < count; ++i) {
    mlps.emplace_back(i < dense ? "dense" : "sparse");
  }
  for (const std::string& kind : mlps) {
    if (kind != "dense" && kind != "sparse") fields.refuse("mlp_layer_types", "found " + kind);
    config.mlps.push_back(kind == "dense" ? Mlp::dense : Mlp::experts);
  }
  if (config.mlps.size() != config.layers.size()) {
    fields.refuse("mlp_layer_types", "expected one of each layer");
  }
}

void read_latent_shape(JsonFields& fields, DecoderShape& shape) {
  std::int64_t own = 128;
  std::int64_t value = 128;
  shape.latent = {512, 64, kLatentEps};
  fields.number("kv_lora_rank", 1, kMaxWidth, shape.latent.rank);
  fields.number("qk_rope_head_dim", 1, kMaxWidth, shape.latent.shared);
  fields.number("qk_nope_head_dim", 1, kMaxWidth, own);
  fields.number("v_head_dim", 1, kMaxWidth, value);
  shape.head_dim = own + shape.latent.shared;
  fields.only("q_lora_rank", nullptr);
  fields.only("qk_head_dim", shape.head_dim);
  if (value != shape.head_dim) {
    fields.refuse("v_head_dim",
                  "only values as long as keys are supported, " + std::to_string(shape.head_dim));
  }
  fields.only("num_key_value_heads", shape.heads);
}

void read_kimi_expert_shape(JsonFields& fields, ExpertShape& experts, float& scale) {
  experts.score = RouterScore::sigmoid;
  experts.shared_weight = SharedWeight::one;
  std::int64_t shared = 1;
  fields.number("num_experts", 1, kMaxExperts, experts.routed);
  fields.only("n_routed_experts", experts.routed);
  fields.number("num_experts_per_token", 1, kMaxExperts, experts.chosen);
  fields.number("moe_intermediate_size", 1, kMaxWidth, experts.width);
  fields.number("num_shared_experts", 0, kMaxExperts, shared);
  // Several shared experts are stored as one.
  experts.shared = shared > 0 ? 1 : 0;
  experts.shared_width = shared * experts.width;
  fields.real("routed_scaling_factor", 0, 1e6, scale);
  fields.only("moe_renormalize", true);
  fields.only("num_expert_group", 1);
  fields.only("topk_group", 1);
}

}  // namespace

Result<void> read_kimi_linear(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  DecoderShape& shape = config.shape;
  DeltaShape& delta = shape.delta;
  float scale = 2.446f;
  bool tied = false;
  read_common(fields, config);
  read_latent_shape(fields, shape);
  config.conv_width = 4;
  read_kimi_layer_kinds(fields, config);
  read_kimi_expert_shape(fields, shape.experts, scale);
  fields.number("linear_num_heads", 1, kMaxWidth, delta.value_heads);
  fields.number("linear_head_dim", 1, kMaxHeadDim, delta.key_dim);
  delta.key_heads = delta.value_heads;
  delta.value_dim = delta.rank = delta.key_dim;
  fields.number("linear_conv_kernel_dim", 2, kMaxConvWidth, config.conv_width);
  fields.real("rms_norm_eps", 1e-12, 1, shape.norm_eps);
  fields.boolean("tie_word_embeddings", tied);
  fields.only("hidden_act", "silu");
  fields.only("attention_bias", false);
  fields.ignore({"model_max_length"});
  shape.embedding_norm = shape.convolutions = shape.head_norms = false;
  shape.root_scale = true;
  config.window = Tokens{1};
  config.state_chunk = Tokens{kKimiStateChunk};
  if (const Result<void> good = check_read(fields, config); !good) return good;

  Weights& weights = checkpoint.weights;
  read_ends(tensors, config, "model.embed_tokens.weight", tied, weights);
  weights.final_norm = tensors.values("model.norm.weight", {shape.hidden});
  for (std::uint32_t i = 0; i < config.layers.size() && !tensors.failed(); ++i) {
    weights.layers.push_back(read_kimi_layer(tensors, config, LayerId{i}, scale));
  }
  return tensors.finish();
}

}  // namespace lockstep::model
