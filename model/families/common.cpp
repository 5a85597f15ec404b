#include "model/families/common.h"

#include <algorithm>
#include <utility>

namespace lockstep::model {

void read_common(JsonFields& fields, ModelConfig& config) {
  DecoderShape& shape = config.shape;
  config.arithmetic = Arithmetic::inkling;
  shape.logit_divisor = 1;
  fields.number("vocab_size", 2, kMaxVocab, config.vocab);
  fields.number("hidden_size", 1, kMaxWidth, shape.hidden);
  fields.number("num_attention_heads", 1, kMaxWidth, shape.heads);
  shape.kv_heads = shape.heads;
  fields.number("num_key_value_heads", 1, kMaxWidth, shape.kv_heads);
  if (shape.heads > 0) shape.head_dim = shape.hidden / shape.heads;
  fields.number("head_dim", 1, kMaxWidth, shape.head_dim);
  fields.number("intermediate_size", 1, kMaxWidth, shape.intermediate);
  // Training, generation, and how a file was written.
  fields.ignore({"model_type",
                 "architectures",
                 "dtype",
                 "torch_dtype",
                 "transformers_version",
                 "auto_map",
                 "_name_or_path",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "initializer_range",
                 "use_cache",
                 "attention_dropout",
                 "hidden_dropout",
                 "max_position_embeddings",
                 "num_logits_to_keep",
                 "output_router_logits",
                 "router_aux_loss_coef",
                 "rescale_prenorm_residual",
                 "pretraining_tp"});
}

void read_no_limits(JsonFields& fields) {
  // JSON has no infinity; transformers writes an object in its place.
  const Json infinity = Json::Object{{"__float__", "Infinity"}};
  fields.only("time_step_limit", Json::Array{0.0, infinity});
  fields.ignore({"time_step_min", "time_step_max", "time_step_floor", "time_step_rank"});
}

std::vector<Mixer> read_layers(JsonFields& fields, std::string_view key,
                               std::span<const LayerName> names, std::int64_t& count) {
  std::vector<std::string> types;
  fields.number("num_hidden_layers", 1, static_cast<std::int64_t>(kMaxLayers), count);
  fields.texts(key, types);
  std::vector<Mixer> mixers;
  for (const std::string& type : types) {
    const auto known = std::ranges::find(names, type, &LayerName::name);
    if (known == names.end()) {
      fields.refuse(key, "\"" + type + "\" is not supported");
      return {};
    }
    mixers.push_back(known->mixer);
  }
  if (count != 0 && !types.empty() && count != static_cast<std::int64_t>(types.size())) {
    fields.refuse(key, std::to_string(types.size()) + " layers, but num_hidden_layers is " +
                           std::to_string(count));
  }
  return mixers;
}

void read_rope(JsonFields& fields, float usual_factor, DecoderShape& shape) {
  float factor = usual_factor;
  const auto read = [&](JsonFields& from) {
    from.real("rope_theta", 1, 1e12, shape.rope_theta);
    from.real("partial_rotary_factor", 0, 1, factor);
  };
  shape.rope_theta = 10000.0f;
  read(fields);
  fields.only("rope_scaling", nullptr);
  const Json* parameters = fields.value("rope_parameters");
  if (parameters != nullptr) {
    if (parameters->as<Json::Object>() == nullptr) {
      return fields.refuse("rope_parameters", "expected an object");
    }
    JsonFields nested(*parameters, fields.source() + ": /rope_parameters");
    read(nested);
    nested.only("rope_type", "default");
    if (const Result<void> good = nested.finish(); !good) fields.fail(good.error());
  }
  shape.rotary_dim = static_cast<std::int64_t>(static_cast<float>(shape.head_dim) * factor);
}

Result<void> check_read(const JsonFields& fields, const ModelConfig& config) {
  if (const Result<void> good = fields.finish(); !good) return good;
  return check_config(config);
}

std::string layer_prefix(std::string_view stem, std::size_t layer) {
  return std::string(stem) + std::to_string(layer) + ".";
}

MlpWeights read_mlp(TensorReader& tensors, const std::string& prefix, std::int64_t hidden,
                    std::int64_t width, const MlpNames& names) {
  MlpWeights mlp;
  if (!names.gate.empty()) {
    mlp.gate = tensors.matrix(prefix + std::string(names.gate), {width, hidden}, names.gate_factor);
  }
  mlp.up = tensors.matrix(prefix + std::string(names.up), {width, hidden});
  mlp.down = tensors.matrix(prefix + std::string(names.down), {hidden, width}, names.down_factor);
  return mlp;
}

void read_projections(TensorReader& tensors, const std::string& prefix, const DecoderShape& shape,
                      const std::string& output, LayerWeights& layer,
                      const AttentionFactors& factors) {
  const double input = factors.input;
  layer.query =
      tensors.matrix(prefix + "q_proj.weight", {shape.query_width(), shape.hidden}, input);
  layer.key = tensors.matrix(prefix + "k_proj.weight", {shape.kv_width(), shape.hidden},
                             input * factors.key);
  layer.value = tensors.matrix(prefix + "v_proj.weight", {shape.kv_width(), shape.hidden}, input);
  layer.output =
      tensors.matrix(prefix + output, {shape.hidden, shape.query_width()}, factors.output);
}

std::vector<float> beside(std::int64_t inputs, std::initializer_list<std::vector<float>> parts) {
  std::vector<float> whole;
  for (std::int64_t row = 0; row < inputs; ++row) {
    for (const std::vector<float>& part : parts) {
      const auto width = static_cast<std::int64_t>(part.size()) / inputs;
      const auto first = part.begin() + row * width;
      whole.insert(whole.end(), first, first + width);
    }
  }
  return whole;
}

RecurrentWeights read_mamba2_mixer(TensorReader& tensors, const std::string& prefix,
                                   const ModelConfig& config, const Mamba2Factors& factors,
                                   float out_factor) {
  const DecoderShape& shape = config.shape;
  const Mamba2Shape& mamba2 = shape.mamba2;
  const RecurrentSizes sizes = recurrent_sizes(shape, Mixer::mamba2);
  const std::int64_t shared = mamba2.groups * mamba2.state;
  std::int64_t first = 0;
  std::size_t part = 0;
  const auto columns = [&](std::int64_t count) {
    const TensorRows rows{first, first + count};
    first += count;
    return tensors.matrix(prefix + "in_proj.weight", {sizes.projected, shape.hidden}, {&rows, 1},
                          factors[part++]);
  };
  RecurrentWeights mixer;
  mixer.in = beside(shape.hidden, {columns(mamba2.channels()), columns(mamba2.channels()),
                                   columns(shared), columns(shared), columns(mamba2.heads)});
  mixer.conv =
      tensors.convolution(prefix + "conv1d.weight", sizes.conv_channels, config.conv_width);
  if (mamba2.conv_bias) {
    mixer.conv_bias = tensors.values(prefix + "conv1d.bias", {sizes.conv_channels});
  }
  mixer.a_log = tensors.values(prefix + "A_log", {mamba2.heads});
  mixer.dt_bias = tensors.values(prefix + "dt_bias", {mamba2.heads});
  mixer.skip = tensors.values(prefix + "D", {mamba2.heads});
  if (mamba2.norm) mixer.norm = tensors.values(prefix + "norm.weight", {mamba2.channels()});
  mixer.out =
      tensors.matrix(prefix + "out_proj.weight", {shape.hidden, mamba2.channels()}, out_factor);
  return mixer;
}

void read_ends(TensorReader& tensors, const ModelConfig& config, const std::string& embedding,
               bool tied, Weights& weights, const EndFactors& factors) {
  const TensorShape shape{config.vocab, config.shape.hidden};
  weights.embedding = tensors.values(embedding, shape, factors.embedding);
  weights.head = tensors.matrix(tied ? embedding : "lm_head.weight", shape, factors.head);
}

}  // namespace lockstep::model
