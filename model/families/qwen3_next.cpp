#include <algorithm>

#include "model/families/families.h"

namespace lockstep::model {
namespace {

constexpr std::int64_t kQwenStateChunk = 64;  // tokens of a chunk of the public kernels

// in_proj_qkvz holds, for each key head, its q, k, v and z; in_proj_ba its b and a. Here all q come
// first, and so on.
void read_gdn(TensorReader& tensors, const std::string& prefix, const ModelConfig& config,
              RecurrentWeights& mixer) {
  const DecoderShape& shape = config.shape;
  const DeltaShape& delta = shape.delta;
  const std::int64_t ratio = delta.value_heads / delta.key_heads;
  const std::int64_t values = ratio * delta.value_dim;
  const std::int64_t stride = 2 * delta.key_dim + 2 * values;
  const auto ranges = [&](std::int64_t begin, std::int64_t width, std::int64_t step) {
    std::vector<TensorRows> rows;
    for (std::int64_t head = 0; head < delta.key_heads; ++head) {
      rows.push_back({head * step + begin, head * step + begin + width});
    }
    return rows;
  };
  std::vector<TensorRows> qkvz;
  for (const auto& [begin, width] : {std::pair{std::int64_t{0}, delta.key_dim},
                                     {delta.key_dim, delta.key_dim},
                                     {2 * delta.key_dim, values},
                                     {2 * delta.key_dim + values, values}}) {
    const std::vector<TensorRows> part = ranges(begin, width, stride);
    qkvz.insert(qkvz.end(), part.begin(), part.end());
  }
  std::vector<TensorRows> ba = ranges(0, ratio, 2 * ratio);
  const std::vector<TensorRows> a = ranges(ratio, ratio, 2 * ratio);
  ba.insert(ba.end(), a.begin(), a.end());
  mixer.in = beside(shape.hidden, {tensors.matrix(prefix + "in_proj_qkvz.weight",
                                                  {delta.key_heads * stride, shape.hidden}, qkvz),
                                   tensors.matrix(prefix + "in_proj_ba.weight",
                                                  {2 * delta.value_heads, shape.hidden}, ba)});
  mixer.conv = tensors.convolution(prefix + "conv1d.weight",
                                   2 * delta.key_width() + delta.value_width(), config.conv_width);
  mixer.a_log = tensors.values(prefix + "A_log", {delta.value_heads});
  mixer.dt_bias = tensors.values(prefix + "dt_bias", {delta.value_heads});
  mixer.norm = tensors.values(prefix + "norm.weight", {delta.value_dim});
  mixer.out = tensors.matrix(prefix + "out_proj.weight", {shape.hidden, delta.value_width()});
}

// q_proj holds, for each head, its queries and then the gate of its output.
void read_qwen_attention(TensorReader& tensors, const std::string& prefix,
                         const DecoderShape& shape, LayerWeights& layer) {
  std::vector<TensorRows> queries;
  std::vector<TensorRows> gates;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const std::int64_t first = 2 * head * shape.head_dim;
    queries.push_back({first, first + shape.head_dim});
    gates.push_back({first + shape.head_dim, first + 2 * shape.head_dim});
  }
  const TensorShape both{2 * shape.query_width(), shape.hidden};
  const TensorShape kv{shape.kv_width(), shape.hidden};
  layer.query = tensors.matrix(prefix + "q_proj.weight", both, queries);
  layer.gate = tensors.matrix(prefix + "q_proj.weight", both, gates);
  layer.key = tensors.matrix(prefix + "k_proj.weight", kv);
  layer.value = tensors.matrix(prefix + "v_proj.weight", kv);
  layer.output = tensors.matrix(prefix + "o_proj.weight", {shape.hidden, shape.query_width()});
  layer.query_norm = tensors.around_one(prefix + "q_norm.weight", shape.head_dim);
  layer.key_norm = tensors.around_one(prefix + "k_norm.weight", shape.head_dim);
}

ExpertWeights read_qwen_experts(TensorReader& tensors, const std::string& prefix,
                                const DecoderShape& shape) {
  const ExpertShape& experts = shape.experts;
  ExpertWeights weights;
  weights.router = beside(
      shape.hidden, {tensors.matrix(prefix + "gate.weight", {experts.routed, shape.hidden}),
                     tensors.matrix(prefix + "shared_expert_gate.weight", {1, shape.hidden})});
  for (std::int64_t i = 0; i < experts.routed && !tensors.failed(); ++i) {
    const std::string own = prefix + "experts." + std::to_string(i) + ".";
    weights.routed.push_back(read_mlp(tensors, own, shape.hidden, experts.width));
  }
  weights.shared.push_back(
      read_mlp(tensors, prefix + "shared_expert.", shape.hidden, experts.shared_width));
  return weights;
}

LayerWeights read_qwen_layer(TensorReader& tensors, const ModelConfig& config, LayerId id) {
  const DecoderShape& shape = config.shape;
  const std::string prefix = layer_prefix("model.layers.", id.index());
  LayerWeights layer;
  layer.input_norm = tensors.around_one(prefix + "input_layernorm.weight", shape.hidden);
  layer.mlp_norm = tensors.around_one(prefix + "post_attention_layernorm.weight", shape.hidden);
  if (config.recurrent(id)) {
    read_gdn(tensors, prefix + "linear_attn.", config, layer.recurrent);
  } else {
    read_qwen_attention(tensors, prefix + "self_attn.", shape, layer);
  }
  if (config.mlp(id) == Mlp::experts) {
    layer.experts = read_qwen_experts(tensors, prefix + "mlp.", shape);
  } else {
    layer.mlp = read_mlp(tensors, prefix + "mlp.", shape.hidden, shape.intermediate);
  }
  return layer;
}

void read_qwen_layer_kinds(JsonFields& fields, ModelConfig& config) {
  constexpr LayerName kNames[] = {{"linear_attention", Mixer::gdn},
                                  {"full_attention", Mixer::full}};
  std::int64_t count = 0;
  std::int64_t interval = 4;
  config.layers = read_layers(fields, "layer_types", kNames, count);
  fields.number("full_attention_interval", 1, kMaxTokens, interval);
  for (std::int64_t i = 0; config.layers.size() < static_cast<std::size_t>(count); ++i) {
    config.layers.push_back((i + 1) % interval != 0 ? Mixer::gdn : Mixer::full);
  }
  std::int64_t step = 1;
  std::vector<std::int64_t> dense;
  fields.number("decoder_sparse_step", 1, kMaxTokens, step);
  fields.numbers("mlp_only_layers", 0, static_cast<std::int64_t>(kMaxLayers), dense);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    const bool only = std::ranges::count(dense, layer) > 0;
    const bool sparse = !only && config.shape.experts.routed > 0 && (layer + 1) % step == 0;
    config.mlps.push_back(sparse ? Mlp::experts : Mlp::dense);
  }
}

}  // namespace

Result<void> read_qwen3_next(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint) {
  ModelConfig& config = checkpoint.config;
  DecoderShape& shape = config.shape;
  DeltaShape& delta = shape.delta;
  ExpertShape& experts = shape.experts;
  bool tied = false;
  read_common(fields, config);
  read_rope(fields, 0.25f, shape);
  experts.score = RouterScore::softmax;
  experts.shared_weight = SharedWeight::gated;
  experts.shared = 1;
  fields.number("num_experts", 0, kMaxExperts, experts.routed);
  fields.number("num_experts_per_tok", 1, kMaxExperts, experts.chosen);
  fields.number("moe_intermediate_size", 1, kMaxWidth, experts.width);
  fields.number("shared_expert_intermediate_size", 1, kMaxWidth, experts.shared_width);
  fields.only("norm_topk_prob", true);
  read_qwen_layer_kinds(fields, config);
  fields.number("linear_num_key_heads", 1, kMaxWidth, delta.key_heads);
  fields.number("linear_num_value_heads", 1, kMaxWidth, delta.value_heads);
  fields.number("linear_key_head_dim", 1, kMaxHeadDim, delta.key_dim);
  fields.number("linear_value_head_dim", 1, kMaxHeadDim, delta.value_dim);
  fields.number("linear_conv_kernel_dim", 2, kMaxConvWidth, config.conv_width);
  fields.real("rms_norm_eps", 1e-12, 1, shape.norm_eps);
  fields.boolean("tie_word_embeddings", tied);
  fields.only("hidden_act", "silu");
  fields.only("attention_bias", false);
  shape.embedding_norm = shape.convolutions = false;
  shape.root_scale = shape.output_gate = true;
  config.window = Tokens{1};
  config.state_chunk = Tokens{kQwenStateChunk};
  if (const Result<void> good = check_read(fields, config); !good) return good;

  Weights& weights = checkpoint.weights;
  read_ends(tensors, config, "model.embed_tokens.weight", tied, weights);
  weights.final_norm = tensors.around_one("model.norm.weight", shape.hidden);
  for (std::uint32_t i = 0; i < config.layers.size() && !tensors.failed(); ++i) {
    weights.layers.push_back(read_qwen_layer(tensors, config, LayerId{i}));
  }
  return tensors.finish();
}

}  // namespace lockstep::model
