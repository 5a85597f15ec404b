#include "core/json.h"
#include "model/config.h"
#include "model/json_fields.h"

namespace lockstep::model {
namespace {

void read_state(JsonFields& fields, StateProperties& state) {
  fields.boolean("kv_scale", state.kv_scale);
  fields.boolean("virtual_slots", state.virtual_slots);
  fields.text("state_dtype", state.state_dtype);
  fields.texts("extra_slot_state", state.extra_slot_state);
  fields.boolean("contiguous_rows", state.contiguous_rows);
}

// The keys of Inkling's config.json for these sizes.
void read_shape(JsonFields& fields, DecoderShape& shape) {
  fields.number("hidden_size", 1, kMaxWidth, shape.hidden);
  fields.number("num_attention_heads", 1, kMaxWidth, shape.heads);
  fields.number("num_key_value_heads", 1, kMaxWidth, shape.kv_heads);
  fields.number("head_dim", 1, kMaxWidth, shape.head_dim);
  fields.number("intermediate_size", 1, kMaxWidth, shape.intermediate);
  fields.number("d_rel", 1, kMaxWidth, shape.relative_dim);
  fields.number("rel_extent", 1, kMaxTokens, shape.full_extent);
  fields.real("rms_norm_eps", 1e-12, 1.0, shape.norm_eps);
  fields.real("logits_mup_width_multiplier", 1e-6, 1e6, shape.logit_divisor);
}

// A decoder with any mixers: for each the keys of a family that has it.
void read_mixers(JsonFields& fields, DecoderShape& shape) {
  float factor = 1;
  fields.boolean("use_sconv", shape.convolutions);
  fields.real("rope_theta", 1, 1e12, shape.rope_theta);
  fields.real("partial_rotary_factor", 0, 1, factor);
  if (shape.rope_theta > 0) {
    shape.rotary_dim = static_cast<std::int64_t>(static_cast<float>(shape.head_dim) * factor);
  }
  shape.mamba2.norm = true;
  fields.number("mamba_num_heads", 1, kMaxWidth, shape.mamba2.heads);
  fields.number("mamba_head_dim", 1, kMaxHeadDim, shape.mamba2.head_dim);
  fields.number("ssm_state_size", 1, kMaxHeadDim, shape.mamba2.state);
  fields.number("n_groups", 1, kMaxWidth, shape.mamba2.groups);
  fields.boolean("use_conv_bias", shape.mamba2.conv_bias);
  fields.number("linear_num_key_heads", 1, kMaxWidth, shape.delta.key_heads);
  fields.number("linear_num_value_heads", 1, kMaxWidth, shape.delta.value_heads);
  fields.number("linear_key_head_dim", 1, kMaxHeadDim, shape.delta.key_dim);
  fields.number("linear_value_head_dim", 1, kMaxHeadDim, shape.delta.value_dim);
  shape.delta.rank = shape.delta.key_dim;
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view text, std::string_view source) {
  const std::string where(source);
  const Result<Json> json = parse_json(text, where);
  if (!json) return json.error();
  if (json->as<Json::Object>() == nullptr) return Error{where + ": expected a JSON object"};

  ModelConfig config;
  config.name = where;
  std::string model_type;
  std::vector<std::string> layers;
  std::int64_t window = 1;
  std::int64_t state_chunk = 1;
  JsonFields fields(*json, where);
  fields.text("model_type", model_type);
  fields.texts("layers", layers);
  fields.number("sliding_window_size", 1, kMaxTokens, window);
  fields.number("state_chunk", 1, kMaxTokens, state_chunk);
  fields.number("vocab_size", 2, kMaxVocab, config.vocab);
  fields.number("conv_kernel_size", 1, kMaxConvWidth, config.conv_width);
  read_state(fields, config.state);
  if (model_type == "inkling" || model_type == "hybrid") {
    config.arithmetic = Arithmetic::inkling;
    read_shape(fields, config.shape);
    if (model_type == "hybrid") read_mixers(fields, config.shape);
  } else if (model_type != "fingerprint") {
    return Error{where + ": /model_type: found \"" + model_type +
                 R"(", expected "fingerprint", "hybrid" or "inkling")"};
  }
  if (const Result<void> good = fields.finish(); !good) return good.error();
  config.window = Tokens{window};
  config.state_chunk = Tokens{state_chunk};
  Result<std::vector<Mixer>> mixers = parse_mixers(layers, config.arithmetic, where);
  if (!mixers) return mixers.error();
  config.layers = std::move(*mixers);
  if (const Result<void> good = check_config(config); !good) return good.error();
  return config;
}

}  // namespace lockstep::model
