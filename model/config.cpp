#include "model/config.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <fstream>
#include <iterator>
#include <span>

#include "model/presets.h"

namespace lockstep::model {
namespace {

struct MixerName {
  std::string_view name;
  Mixer mixer;
  Arithmetic arithmetic;
};
constexpr MixerName kMixers[] = {
    {"full", Mixer::full, Arithmetic::fingerprint},
    {"swa", Mixer::swa, Arithmetic::fingerprint},
    {"rec", Mixer::recurrent, Arithmetic::fingerprint},
    {"full", Mixer::full, Arithmetic::inkling},
    {"swa", Mixer::swa, Arithmetic::inkling},
    {"mamba2", Mixer::mamba2, Arithmetic::inkling},
    {"gdn", Mixer::gdn, Arithmetic::inkling},
    {"kda", Mixer::kda, Arithmetic::inkling},
    {"shortconv", Mixer::shortconv, Arithmetic::inkling},
    {"full+mamba2", Mixer::full_mamba2, Arithmetic::inkling},
};

// The head sizes that the attention kernels are compiled for.
constexpr std::array<std::int64_t, 6> kHeadDims{4, 8, 16, 32, 64, 128};

Result<Mixer> parse_mixer(const std::string& name, Arithmetic arithmetic,
                          const std::string& where) {
  std::string expected;
  for (const MixerName& entry : kMixers) {
    if (entry.arithmetic != arithmetic) continue;
    if (entry.name == name) return entry.mixer;
    expected += (expected.empty() ? "\"" : ", \"") + std::string(entry.name) + "\"";
  }
  return Error{where + ": unknown layer \"" + name + "\", expected one of " + expected};
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{path + ": cannot read this model file"};
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

Result<ModelConfig> named_config(const ModelSpec& spec) {
  std::string known;
  for (const Preset& preset : presets()) {
    if (preset.name == spec.preset) return parse_model_config(preset.json, spec.preset);
    known += " " + std::string(preset.name);
  }
  if (spec.preset.ends_with(".json")) {
    const Result<std::string> text = read_file(spec.preset);
    return text ? parse_model_config(*text, spec.preset) : Result<ModelConfig>(text.error());
  }
  const std::string where = spec.source.empty() ? "model" : spec.source;
  return Error{where + ": unknown preset \"" + spec.preset + "\", expected a .json file or one of" +
               known};
}

struct Range {
  const char* what;
  std::int64_t value;
  std::int64_t low;
  std::int64_t high;
};

Result<void> check_ranges(const ModelConfig& config, std::span<const Range> ranges) {
  for (const Range& range : ranges) {
    if (range.value >= range.low && range.value <= range.high) continue;
    return Error{"model " + config.name + ": " + range.what + " " + std::to_string(range.value) +
                 ", expected " + std::to_string(range.low) + " to " + std::to_string(range.high)};
  }
  return {};
}

// What the kernels' fixed orders need of the heads.
Result<void> check_heads(const ModelConfig& config, const DecoderShape& shape) {
  const Range ranges[] = {
      {"num_attention_heads", shape.heads, 1, kMaxWidth},
      {"num_key_value_heads", shape.kv_heads, 1, shape.heads},
      {"rotary_dim", shape.rotary_dim, 0, shape.head_dim},
  };
  if (const Result<void> good = check_ranges(config, ranges); !good) return good;
  const std::string model = "model " + config.name + ": ";
  if (!std::has_single_bit(static_cast<std::uint64_t>(shape.heads))) {
    return Error{model + "num_attention_heads " + std::to_string(shape.heads) +
                 ", expected a power of two: heads are combined in a balanced tree"};
  }
  if (shape.heads % shape.kv_heads != 0) {
    return Error{model + "num_key_value_heads " + std::to_string(shape.kv_heads) +
                 ", expected a divisor of num_attention_heads"};
  }
  if (std::ranges::find(kHeadDims, shape.head_dim) == kHeadDims.end()) {
    return Error{model + "head_dim " + std::to_string(shape.head_dim) +
                 ", expected 4, 8, 16, 32, 64 or 128"};
  }
  if (shape.rotary_dim == 1 || (shape.rotary_dim & (shape.rotary_dim - 1)) != 0) {
    return Error{model + "rotary_dim " + std::to_string(shape.rotary_dim) +
                 ", expected 0 or a power of two from 2 on"};
  }
  return {};
}

Result<void> check_experts(const ModelConfig& config) {
  if (std::ranges::count(config.mlps, Mlp::experts) == 0) return {};
  const ExpertShape& experts = config.shape.experts;
  const Range ranges[] = {
      {"num_experts", experts.routed, 1, kMaxExperts},
      {"num_experts_per_tok", experts.chosen, 1, experts.routed},
      {"num_shared_experts", experts.shared, 0, kMaxExperts},
      {"moe_intermediate_size", experts.width, 1, kMaxWidth},
      {"shared_expert_intermediate_size", experts.shared_width, experts.shared > 0 ? 1 : 0,
       kMaxWidth},
  };
  return check_ranges(config, ranges);
}

bool has(const ModelConfig& config, std::initializer_list<Mixer> mixers) {
  return std::ranges::any_of(
      mixers, [&](Mixer mixer) { return std::ranges::count(config.layers, mixer) > 0; });
}

// What recurrent mixers need. Heads are combined in a balanced tree, like those of attention.
Result<void> check_recurrent(const ModelConfig& config) {
  const Mamba2Shape& mamba2 = config.shape.mamba2;
  const DeltaShape& delta = config.shape.delta;
  std::vector<Range> ranges;
  std::int64_t heads = 1;
  bool shared = true;
  if (has(config, {Mixer::mamba2, Mixer::full_mamba2})) {
    ranges.insert(ranges.end(), {{"mamba heads", mamba2.heads, 1, kMaxWidth},
                                 {"mamba head_dim", mamba2.head_dim, 1, kMaxHeadDim},
                                 {"mamba state size", mamba2.state, 1, kMaxHeadDim},
                                 {"mamba groups", mamba2.groups, 1, mamba2.heads}});
    heads *= mamba2.heads;
    shared = shared && mamba2.groups > 0 && mamba2.heads % mamba2.groups == 0;
  }
  if (has(config, {Mixer::gdn, Mixer::kda})) {
    ranges.insert(ranges.end(), {{"linear value heads", delta.value_heads, 1, kMaxWidth},
                                 {"linear key heads", delta.key_heads, 1, delta.value_heads},
                                 {"linear key dim", delta.key_dim, 1, kMaxHeadDim},
                                 {"linear value dim", delta.value_dim, 1, kMaxHeadDim}});
    heads *= delta.value_heads;
    shared = shared && delta.key_heads > 0 && delta.value_heads % delta.key_heads == 0;
  }
  if (has(config, {Mixer::kda})) {
    ranges.insert(ranges.end(), {{"linear rank", delta.rank, 1, kMaxWidth},
                                 {"linear key heads of kda", delta.key_heads, delta.value_heads,
                                  delta.value_heads}});
  }
  if (const Result<void> good = check_ranges(config, ranges); !good) return good;
  const std::string model = "model " + config.name + ": ";
  if (!std::has_single_bit(static_cast<std::uint64_t>(heads))) {
    return Error{model +
                 "the number of recurrent heads is no power of two: heads are combined in a "
                 "balanced tree"};
  }
  if (!shared) return Error{model + "key heads or groups do not divide the recurrent heads"};
  return {};
}

Result<void> check_shape(const ModelConfig& config) {
  const DecoderShape& shape = config.shape;
  const bool dense = config.mlps.empty() || std::ranges::count(config.mlps, Mlp::dense) > 0;
  const Range ranges[] = {
      {"hidden_size", shape.hidden, 1, kMaxWidth},
      {"intermediate_size", shape.intermediate, dense ? 1 : 0, kMaxWidth},
      {"d_rel", shape.relative_dim, 0, kMaxWidth},
      {"kv_lora_rank", shape.latent.rank, 0, kMaxWidth},
  };
  if (const Result<void> good = check_ranges(config, ranges); !good) return good;
  const bool attends = has(config, {Mixer::full, Mixer::swa, Mixer::full_mamba2});
  for (std::uint32_t i = 0; attends && i < config.layers.size(); ++i) {
    const Result<void> good = check_heads(config, config.shape_of(LayerId{i}));
    if (!good) return good;
  }
  if (const Result<void> good = check_experts(config); !good) return good;
  if (const Result<void> good = check_recurrent(config); !good) return good;
  const std::string model = "model " + config.name + ": ";
  if (!(shape.norm_eps > 0) || !(shape.logit_divisor > 0)) {
    return Error{model + "rms_norm_eps and logits_mup_width_multiplier must be given"};
  }
  return {};
}

}  // namespace

std::string_view mixer_name(Mixer mixer) {
  const auto* entry = std::ranges::find(kMixers, mixer, &MixerName::mixer);
  return entry->name;
}

Result<std::vector<Mixer>> parse_mixers(const std::vector<std::string>& names,
                                        Arithmetic arithmetic, const std::string& source) {
  std::vector<Mixer> mixers;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string where = source + ": /layers/" + std::to_string(i);
    const Result<Mixer> mixer = parse_mixer(names[i], arithmetic, where);
    if (!mixer) return mixer.error();
    mixers.push_back(*mixer);
  }
  return mixers;
}

Result<void> check_config(const ModelConfig& config) {
  if (config.layers.empty() || config.layers.size() > kMaxLayers) {
    return Error{"model " + config.name + ": " + std::to_string(config.layers.size()) +
                 " layers, expected 1 to " + std::to_string(kMaxLayers)};
  }
  // One tap would leave a decoder's convolutions without a state.
  const bool decoder = config.arithmetic != Arithmetic::fingerprint;
  const Range ranges[] = {
      {"window", config.window.value(), 1, kMaxTokens},
      {"state_chunk", config.state_chunk.value(), 1, kMaxTokens},
      {"vocab", config.vocab, 2, kMaxVocab},
      {"conv_kernel_size", config.conv_width, config.shape.convolutions && decoder ? 2 : 1,
       kMaxConvWidth},
  };
  if (const Result<void> good = check_ranges(config, ranges); !good) return good;
  return decoder ? check_shape(config) : Result<void>();
}

Result<void> check_cacheable(const ModelConfig& config) {
  if (std::ranges::count(config.layers, Mixer::full) > 0) return {};
  if (std::ranges::count(config.layers, Mixer::full_mamba2) > 0) return {};
  return Error{"model " + config.name +
               ": no \"full\" layer; the cache names every prefix by its FULL pages"};
}

void merge_state(const ModelSpec& spec, ModelConfig& config) {
  const StateProperties plain;
  StateProperties& state = config.state;
  if (spec.state_chunk) config.state_chunk = *spec.state_chunk;
  if (spec.kv_scale) state.kv_scale = true;
  if (spec.virtual_slots) state.virtual_slots = true;
  if (spec.state_dtype != plain.state_dtype) state.state_dtype = spec.state_dtype;
  if (!spec.extra_slot_state.empty()) state.extra_slot_state = spec.extra_slot_state;
  if (!spec.contiguous_rows) state.contiguous_rows = false;
}

Result<ModelConfig> resolve_model_config(const ModelSpec& spec) {
  Result<ModelConfig> config = named_config(spec);
  if (!config) return config;
  const std::string where = spec.source.empty() ? "model " + spec.preset : spec.source;
  if (spec.layers) {
    Result<std::vector<Mixer>> mixers = parse_mixers(*spec.layers, config->arithmetic, where);
    if (!mixers) return mixers.error();
    config->layers = std::move(*mixers);
  }
  if (spec.window) config->window = *spec.window;
  if (spec.vocab) config->vocab = *spec.vocab;
  merge_state(spec, *config);
  if (const Result<void> good = check_config(*config); !good) return good.error();
  if (const Result<void> good = check_cacheable(*config); !good) return good.error();
  return config;
}

namespace {

std::string describe_heads(const DecoderShape& shape) {
  return std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) + "x" +
         std::to_string(shape.head_dim);
}

std::string describe_experts(const ModelConfig& config) {
  if (config.mlps.empty()) return "";
  const ExpertShape& experts = config.shape.experts;
  std::string text = " mlps=";
  for (const Mlp mlp : config.mlps) text += std::to_string(static_cast<int>(mlp));
  for (const std::int64_t value : {experts.routed, experts.chosen, experts.shared, experts.width,
                                   experts.shared_width, static_cast<std::int64_t>(experts.score),
                                   static_cast<std::int64_t>(experts.shared_weight)}) {
    text += "," + std::to_string(value);
  }
  return text;
}

// Only what differs from a default, so that the fingerprint of a model stays when a feature comes.
std::string describe_features(const DecoderShape& shape) {
  std::string text;
  const auto number = [&](const char* name, auto value, auto usual) {
    if (value != usual)
      text += std::string(" ") + name + "=" + shortest(static_cast<double>(value));
  };
  const DecoderShape usual;
  number("embedding_norm", shape.embedding_norm, usual.embedding_norm);
  number("head_norms", shape.head_norms, usual.head_norms);
  number("convolutions", shape.convolutions, usual.convolutions);
  number("root_scale", shape.root_scale, usual.root_scale);
  number("output_gate", shape.output_gate, usual.output_gate);
  number("rotary_dim", shape.rotary_dim, usual.rotary_dim);
  number("rope_theta", shape.rope_theta, usual.rope_theta);
  number("scaling_from", shape.scaling_from, usual.scaling_from);
  number("scaling_strength", shape.scaling_strength, usual.scaling_strength);
  number("latent", shape.latent.rank, usual.latent.rank);
  number("latent_shared", shape.latent.shared, usual.latent.shared);
  number("latent_eps", shape.latent.eps, usual.latent.eps);
  number("mamba2_heads", shape.mamba2.heads, usual.mamba2.heads);
  number("mamba2_head_dim", shape.mamba2.head_dim, usual.mamba2.head_dim);
  number("mamba2_state", shape.mamba2.state, usual.mamba2.state);
  number("mamba2_groups", shape.mamba2.groups, usual.mamba2.groups);
  number("mamba2_conv_bias", shape.mamba2.conv_bias, usual.mamba2.conv_bias);
  number("mamba2_norm", shape.mamba2.norm, usual.mamba2.norm);
  number("delta_key_heads", shape.delta.key_heads, usual.delta.key_heads);
  number("delta_value_heads", shape.delta.value_heads, usual.delta.value_heads);
  number("delta_key_dim", shape.delta.key_dim, usual.delta.key_dim);
  number("delta_value_dim", shape.delta.value_dim, usual.delta.value_dim);
  number("delta_rank", shape.delta.rank, usual.delta.rank);
  number("activation", static_cast<int>(shape.activation), static_cast<int>(usual.activation));
  return text;
}

std::string describe_shape(const ModelConfig& config) {
  const DecoderShape& shape = config.shape;
  std::string text = " hidden=" + std::to_string(shape.hidden) + " heads=" + describe_heads(shape);
  if (shape.swa_heads) {
    text += " swa_heads=" + std::to_string(shape.swa_heads->heads) + "/" +
            std::to_string(shape.swa_heads->kv_heads) + "x" +
            std::to_string(shape.swa_heads->head_dim);
  }
  return text + " intermediate=" + std::to_string(shape.intermediate) +
         " relative=" + std::to_string(shape.relative_dim) + "x" +
         std::to_string(config.full_extent()) + " eps=" + shortest(shape.norm_eps) +
         " divisor=" + shortest(shape.logit_divisor) + describe_features(shape) +
         describe_experts(config);
}

}  // namespace

DecoderShape ModelConfig::shape_of(LayerId layer) const {
  DecoderShape own = shape;
  if (layers[layer.index()] == Mixer::swa && shape.swa_heads) {
    own.heads = shape.swa_heads->heads;
    own.kv_heads = shape.swa_heads->kv_heads;
    own.head_dim = shape.swa_heads->head_dim;
  }
  return own;
}

std::optional<Mixer> ModelConfig::recurrent(LayerId layer) const {
  switch (layers[layer.index()]) {
    case Mixer::full:
    case Mixer::swa:
    case Mixer::recurrent:
      return std::nullopt;
    case Mixer::full_mamba2:
      return Mixer::mamba2;
    default:
      return layers[layer.index()];
  }
}

RecurrentSizes recurrent_sizes(const DecoderShape& shape, Mixer mixer) {
  const Mamba2Shape& mamba2 = shape.mamba2;
  const DeltaShape& delta = shape.delta;
  const std::int64_t mixed = 2 * delta.key_width() + delta.value_width();
  const std::int64_t state = delta.value_heads * delta.value_dim * delta.key_dim;
  switch (mixer) {
    case Mixer::mamba2: {  // z, x, B, C, dt
      const std::int64_t conv = mamba2.channels() + 2 * mamba2.groups * mamba2.state;
      return {mamba2.channels() + conv + mamba2.heads, mamba2.channels(), conv,
              mamba2.channels() * mamba2.state, mamba2.channels()};
    }
    case Mixer::gdn:  // q, k, v, z, b, a
      return {mixed + delta.value_width() + 2 * delta.value_heads, 0, mixed, state,
              delta.value_width()};
    case Mixer::kda:  // q, k, v, b, and what decay and gate are projected from
      return {mixed + delta.value_heads + 2 * delta.rank, 0, mixed, state, delta.value_width()};
    case Mixer::shortconv:  // B, C, x
      return {3 * shape.hidden, 2 * shape.hidden, shape.hidden, 0, shape.hidden};
    default:
      return {};
  }
}

std::string describe(const ModelConfig& config) {
  const bool decoder = config.arithmetic != Arithmetic::fingerprint;
  std::string text = decoder ? "inkling-1 layers=" : "fingerprint-1 layers=";
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (i > 0) text += ",";
    text += mixer_name(config.layers[i]);
  }
  text += " window=" + std::to_string(config.window.value()) +
          " state_chunk=" + std::to_string(config.state_chunk.value()) +
          " vocab=" + std::to_string(config.vocab) +
          " conv_kernel_size=" + std::to_string(config.conv_width);
  return decoder ? text + describe_shape(config) : text;
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  const std::to_chars_result end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

}  // namespace lockstep::model
