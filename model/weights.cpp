#include "model/weights.h"

#include <string>

#include "core/random.h"
#include "model/detmath.h"

namespace lockstep::model {
namespace {

// `count` values uniform in [-1, 1).
std::vector<float> draw_units(std::uint64_t seed, const std::string& tensor, std::int64_t count) {
  SplitMix64 random = substream(seed, "weights." + tensor);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const auto integer = static_cast<std::int32_t>(random.next() >> 40) - (1 << 23);
    value = static_cast<float>(integer) * 0x1p-23f;
  }
  return values;
}

// `count` values uniform in centre -+ sqrt(3) * deviation, so that they have that deviation. Only
// exact operations, so that every build draws the same weights.
std::vector<float> draw(std::uint64_t seed, const std::string& tensor, std::int64_t count,
                        float deviation, float centre = 0) {
  constexpr float kSqrt3 = 0x1.bb67aep+0f;
  std::vector<float> values = draw_units(seed, tensor, count);
  for (float& value : values) value = detmath::fma(value, kSqrt3 * deviation, centre);
  return values;
}

class LayerDraw {
 public:
  LayerDraw(const ModelConfig& config, std::uint64_t seed, std::uint32_t layer)
      : config_(config), seed_(seed), layer_(layer) {}

  LayerWeights weights() const {
    const DecoderShape& shape = config_.shape;
    const std::optional<Mixer> recurrent_mixer = config_.recurrent(LayerId{layer_});
    LayerWeights w;
    w.input_norm = norm("input_norm", shape.hidden, 1.0f);
    if (!recurrent_mixer || config_.layers[layer_] == Mixer::full_mamba2) draw_attention(w);
    if (recurrent_mixer) {
      w.recurrent = recurrent(*recurrent_mixer);
    } else if (shape.convolutions) {
      draw_convolutions(w);
    }
    w.mlp_norm = norm("mlp_norm", shape.hidden, 1.0f);
    w.mlp.gate = matrix("gate", shape.hidden, shape.intermediate);
    w.mlp.up = matrix("up", shape.hidden, shape.intermediate);
    w.mlp.down = matrix("down", shape.intermediate, shape.hidden);
    return w;
  }

 private:
  void draw_attention(LayerWeights& w) const {
    const DecoderShape& shape = config_.shape;
    const std::int64_t extent = config_.bias_extent(LayerId{layer_});
    w.query = matrix("query", shape.hidden, shape.query_width());
    w.key = matrix("key", shape.hidden, shape.kv_width());
    w.value = matrix("value", shape.hidden, shape.kv_width());
    w.relative = matrix("relative", shape.hidden, shape.relative_width());
    // Scores are divided by head_dim: weights around 2 keep attention from being almost uniform.
    w.query_norm = norm("query_norm", shape.head_dim, 2.0f);
    w.key_norm = norm("key_norm", shape.head_dim, 2.0f);
    w.profiles = draw(seed_, name("profiles"), shape.relative_dim * extent, 0.5f);
    w.output = matrix("output", shape.query_width(), shape.hidden);
  }

  void draw_convolutions(LayerWeights& w) const {
    const DecoderShape& shape = config_.shape;
    w.key_conv = convolution("key_conv", shape.kv_width());
    w.value_conv = convolution("value_conv", shape.kv_width());
    w.attention_conv = convolution("attention_conv", shape.hidden);
    w.mlp_conv = convolution("mlp_conv", shape.hidden);
  }

  RecurrentWeights recurrent(Mixer mixer) const {
    const DecoderShape& shape = config_.shape;
    const RecurrentSizes sizes = recurrent_sizes(shape, mixer);
    RecurrentWeights w;
    w.in = matrix("recurrent_in", shape.hidden, sizes.projected);
    w.conv = convolution("recurrent_conv", sizes.conv_channels);
    w.out = matrix("recurrent_out", sizes.output, shape.hidden);
    if (mixer == Mixer::shortconv) return w;
    const bool ssm = mixer == Mixer::mamba2;
    const std::int64_t heads = ssm ? shape.mamba2.heads : shape.delta.value_heads;
    w.a_log = decay_rates(heads);
    w.dt_bias = time_steps(mixer == Mixer::kda ? shape.delta.key_width() : heads);
    w.norm = norm("recurrent_norm", ssm ? sizes.output : shape.delta.value_dim, 1.0f);
    if (ssm) w.skip = norm("skip", heads, 1.0f);
    if (ssm && shape.mamba2.conv_bias) {
      w.conv_bias = draw(seed_, name("recurrent_conv_bias"), sizes.conv_channels, 0.1f);
    }
    if (mixer == Mixer::kda) {
      w.decay = matrix("decay", shape.delta.rank, shape.delta.key_width());
      w.gate = matrix("recurrent_gate", shape.delta.rank, sizes.output);
    }
    return w;
  }

  // ln A for A uniform in [1, 16].
  std::vector<float> decay_rates(std::int64_t count) const {
    std::vector<float> values = units("a_log", count);
    for (float& value : values) value = detmath::log(detmath::fma(value, 7.5f, 8.5f));
    return values;
  }

  // What softplus() takes to dt, for dt log-uniform in [1e-3, 1e-1].
  std::vector<float> time_steps(std::int64_t count) const {
    constexpr float kCentre = -4.6051702f;    // ln 1e-2
    constexpr float kHalfRange = 2.3025851f;  // ln 10
    std::vector<float> values = units("dt_bias", count);
    for (float& value : values) {
      const float dt = detmath::exp(detmath::fma(value, kHalfRange, kCentre));
      value = dt + detmath::log(1.0f - detmath::exp(-dt));
    }
    return values;
  }

  // Uniform in [-1, 1).
  std::vector<float> units(const std::string& tensor, std::int64_t count) const {
    return draw_units(seed_, name(tensor), count);
  }
  std::string name(const std::string& tensor) const {
    return std::to_string(layer_) + "." + tensor;
  }
  std::vector<float> norm(const std::string& tensor, std::int64_t width, float centre) const {
    return draw(seed_, name(tensor), width, 0.1f, centre);
  }
  std::vector<float> matrix(const std::string& tensor, std::int64_t inputs,
                            std::int64_t outputs) const {
    const float deviation = detmath::rsqrt(static_cast<float>(inputs));
    return draw(seed_, name(tensor), inputs * outputs, deviation);
  }
  std::vector<float> convolution(const std::string& tensor, std::int64_t channels) const {
    return draw(seed_, name(tensor), config_.conv_width * channels, 0.3f);
  }

  const ModelConfig& config_;
  std::uint64_t seed_;
  std::uint32_t layer_;
};

}  // namespace

Weights draw_weights(const ModelConfig& config, std::uint64_t seed) {
  const DecoderShape& shape = config.shape;
  Weights weights;
  weights.seed = seed;
  weights.embedding = draw(seed, "embedding", config.vocab * shape.hidden, 1.0f);
  if (shape.embedding_norm) {
    weights.embedding_norm = draw(seed, "embedding_norm", shape.hidden, 0.1f, 1.0f);
  }
  for (std::uint32_t layer = 0; layer < config.layers.size(); ++layer) {
    weights.layers.push_back(LayerDraw(config, seed, layer).weights());
  }
  weights.final_norm = draw(seed, "final_norm", shape.hidden, 0.1f, 1.0f);
  weights.head = draw(seed, "head", shape.hidden * config.vocab, 1.0f);
  return weights;
}

std::vector<float> Weights::adapter(std::string_view extra_key) const {
  const std::string tensor = "adapter." + std::string(extra_key);
  return draw(seed, tensor, static_cast<std::int64_t>(final_norm.size()), 0.5f);
}

}  // namespace lockstep::model
