// The fp64 reference against cases that can be worked out by hand, then the fp32 kernels against
// the reference.
#include "oracle/reference.h"

#include <cmath>
#include <cstring>

#include "catch.h"
#include "model/decoder.h"
#include "model_families.h"
#include "model_sandbox.h"
#include "oracle/kl.h"
#include "oracle/reference_sequence.h"

namespace lockstep::oracle {
namespace {

using model::Mixer;
using Vector = std::vector<float>;

const Vector kIdentity{1, 0, 0, 1};
constexpr TokenId kA{0};  // embeds as (1, 1)
constexpr TokenId kB{1};  // embeds as (1, -1)

// One layer, hidden size 2, one head of dimension 2, two taps; the head is the identity. Every
// mixing weight is 0, so that the logits are the normed embedding until a test sets more.
model::Numbers tiny() {
  model::Numbers numbers;
  model::ModelConfig& config = numbers.config;
  config.arithmetic = model::Arithmetic::inkling;
  config.layers = {Mixer::full};
  config.window = Tokens{1};
  config.vocab = 2;
  config.conv_width = 2;
  config.shape = {2, 1, 1, 2, 2, 1, 2, 0.0f, 1.0f};
  numbers.weights.embedding = {1, 1, 1, -1};
  numbers.weights.embedding_norm = {1, 1};
  numbers.weights.final_norm = {1, 1};
  numbers.weights.head = kIdentity;
  model::LayerWeights layer;
  for (Vector* ones : {&layer.input_norm, &layer.query_norm, &layer.key_norm, &layer.mlp_norm}) {
    *ones = {1, 1};
  }
  for (Vector* zeros :
       {&layer.value, &layer.output, &layer.mlp.gate, &layer.mlp.up, &layer.mlp.down}) {
    *zeros = Vector(4);
  }
  for (Vector* zeros :
       {&layer.key_conv, &layer.value_conv, &layer.attention_conv, &layer.mlp_conv}) {
    *zeros = Vector(4);
  }
  // Norms divide by the root of the mean square, so q and k must not be 0 where eps is.
  layer.query = kIdentity;
  layer.key = {0, 0, 0, 0};
  layer.relative = Vector(2);
  layer.profiles = Vector(2);
  numbers.weights.layers = {layer};
  return numbers;
}

// Uniform attention over values that are the normed inputs: keys that are equal for all tokens.
model::Numbers averaging() {
  model::Numbers numbers = tiny();
  model::LayerWeights& layer = numbers.weights.layers[0];
  layer.key = {1, 1, 0, 0};  // both components are the first input, which is 1 for A and B
  layer.query = {1, 1, 0, 0};
  layer.value = kIdentity;
  layer.output = kIdentity;
  return numbers;
}

// The logits after the last token, for the final hidden state (x, y): its norm.
void require_hidden(const model::Numbers& numbers, std::vector<TokenId> tokens, double x,
                    double y) {
  const ReferenceWeights weights(numbers);
  ReferenceSequence sequence(weights, std::nullopt);
  for (const TokenId token : tokens) sequence.append(token);
  const std::span<const double> logits =
      sequence.logits(Tokens{static_cast<std::int64_t>(tokens.size()) - 1});
  const double root = std::sqrt((x * x + y * y) / 2);
  REQUIRE(logits[0] == Approx(x / root).epsilon(1e-12));
  REQUIRE(logits[1] == Approx(y / root).epsilon(1e-12));
}

TEST_CASE("reference: embedding, norms, divisor and head alone") {
  model::Numbers numbers = averaging();
  numbers.weights.layers[0].output = Vector(4);
  numbers.weights.embedding = {3, 4, 1, -1};
  numbers.config.shape.logit_divisor = 2;
  numbers.weights.final_norm = {1, 10};
  const ReferenceWeights weights(numbers);
  ReferenceSequence sequence(weights, std::nullopt);
  sequence.append(kA);
  // (3, 4) has mean square 12.5, so its norm is (0.6, 0.8) * sqrt(2).
  const std::span<const double> logits = sequence.logits(Tokens{0});
  REQUIRE(logits[0] == Approx(0.3 * std::sqrt(2.0)).epsilon(1e-12));
  REQUIRE(logits[1] == Approx(4.0 * std::sqrt(2.0)).epsilon(1e-12));
}

TEST_CASE("reference: uniform attention adds the mean of what the window holds") {
  model::Numbers numbers = averaging();
  require_hidden(numbers, {kA, kB}, 1 + 1, -1 + 0);  // (A + B) / 2 = (1, 0)
  require_hidden(numbers, {kA, kA, kB}, 1 + 1, -1 + 1.0 / 3);
  numbers.config.layers = {Mixer::swa};  // window 1: B alone
  require_hidden(numbers, {kA, kB}, 2, -2);
  numbers.config.window = Tokens{2};
  require_hidden(numbers, {kA, kA, kB}, 2, -1);
}

TEST_CASE("reference: scores are q.k / head_dim") {
  model::Numbers numbers = averaging();
  numbers.weights.layers[0].query = kIdentity;
  numbers.weights.layers[0].key = kIdentity;
  // B.A / 2 = 0 and B.B / 2 = 1: weights 1 / (1 + e) and e / (1 + e); their difference is tanh 1/2.
  require_hidden(numbers, {kA, kB}, 2, -1 - std::tanh(0.5));
}

TEST_CASE("reference: the relative bias depends on the distance and ends at the extent") {
  model::Numbers numbers = averaging();
  numbers.weights.layers[0].relative = {1, 0};  // r = 1 for both tokens
  numbers.weights.layers[0].profiles = {0.0f, std::log(3.0f)};
  // Distance 1 weighs three times distance 0: 3/4 A + 1/4 B = (1, 1/2). Compare at fp32's ln 3.
  const double weight = std::exp(static_cast<double>(std::log(3.0f)));
  require_hidden(numbers, {kA, kB}, 2, -1 + (weight - 1) / (weight + 1));
  // Three tokens: distance 2 has no bias. Weights 1 : 3 : 1.
  require_hidden(numbers, {kA, kA, kB}, 2, -1 + (1 + weight - 1) / (weight + 2));
}

TEST_CASE("reference: each convolution adds the taps' inputs, 0 before the first token") {
  model::Numbers numbers = averaging();
  model::LayerWeights& layer = numbers.weights.layers[0];
  layer.value_conv = {1, 1, 0, 0};  // + the input before
  // Values A = (1, 1) and B + A = (2, 0): their mean is (1.5, 0.5).
  require_hidden(numbers, {kA, kB}, 2.5, -0.5);
  layer.value_conv = {0, 0, 1, 1};  // + the input itself: all values twice
  require_hidden(numbers, {kA, kB}, 3, -1);
  layer.value_conv = Vector(4);
  layer.attention_conv = {1, 1, 0, 0};
  // The updates are (1, 1) at A and (1, 0) at B; B adds both.
  require_hidden(numbers, {kA, kB}, 1 + 2, -1 + 1);
}

TEST_CASE("reference: the convolution of keys comes before their norm") {
  model::Numbers numbers = averaging();
  model::LayerWeights& layer = numbers.weights.layers[0];
  layer.query = kIdentity;
  layer.key = kIdentity;
  layer.key_conv = {1, 1, 0, 0};
  // Keys (1, 1) and (1, -1) + (1, 1) = (2, 0), normed to (sqrt 2, 0). q = (1, -1): scores 0 and
  // sqrt(2) / 2.
  const double weight = std::exp(std::sqrt(0.5));
  require_hidden(numbers, {kA, kB}, 2, -1 + (1 - weight) / (1 + weight));
}

TEST_CASE("reference: the MLP is silu(gate) * up, and has a convolution") {
  model::Numbers numbers = averaging();
  model::LayerWeights& layer = numbers.weights.layers[0];
  layer.output = Vector(4);
  layer.mlp.gate = layer.mlp.up = layer.mlp.down = kIdentity;
  const double plus = 1 / (1 + std::exp(-1.0));  // silu(1) * 1
  const double minus = 1 - plus;                 // silu(-1) * -1
  require_hidden(numbers, {kB}, 1 + plus, -1 + minus);
  layer.mlp_conv = {1, 1, 0, 0};
  require_hidden(numbers, {kA, kB}, 1 + 2 * plus, -1 + minus + plus);
}

TEST_CASE("reference: query heads share the KV head of their group") {
  model::Numbers numbers = averaging();
  // Four heads of dimension 1 on two KV heads: v0 = x0 and v1 = x1.
  numbers.config.shape.heads = 4;
  numbers.config.shape.kv_heads = 2;
  numbers.config.shape.head_dim = 1;
  model::LayerWeights& layer = numbers.weights.layers[0];
  layer.query = Vector(8, 1);
  for (std::size_t i = 4; i < 8; ++i) layer.query[i] = 0;
  layer.key = {1, 1, 0, 0};
  layer.query_norm = layer.key_norm = {1};
  layer.relative = Vector(8);
  layer.output = {1, 0, 10, 0, 0, 1, 0, 10};
  // Heads 0 and 1 give 11 times the mean of x0, heads 2 and 3 of x1.
  require_hidden(numbers, {kA, kB}, 1 + 11, -1 + 0);
}

TEST_CASE("reference: an adapter is added to the normed embedding") {
  model::Numbers numbers = averaging();
  numbers.weights.layers[0].output = Vector(4);
  const Vector adapter = numbers.weights.adapter("a");
  const ReferenceWeights weights(numbers);
  ReferenceSequence sequence(weights, "a");
  sequence.append(kA);
  const double x = 1.0 + adapter[0];
  const double y = 1.0 + adapter[1];
  const double root = std::sqrt((x * x + y * y) / 2);
  REQUIRE(sequence.logits(Tokens{0})[0] == Approx(x / root).epsilon(1e-12));
  REQUIRE(sequence.logits(Tokens{0})[1] == Approx(y / root).epsilon(1e-12));
}

model::ModelSpec preset(const char* name) {
  model::ModelSpec spec;
  spec.preset = name;
  return spec;
}

TEST_CASE("reference: shared prefixes are computed once, branches do not disturb each other") {
  const auto model = model::must_make(preset("inkling-pico"));
  const std::vector<TokenId> trunk = model::random_tokens(*model, 30, 31);
  std::vector<TokenId> branch(trunk.begin(), trunk.begin() + 20);
  for (const TokenId token : model::random_tokens(*model, 5, 32)) branch.push_back(token);
  Reference reference(*model);
  const auto at = [&](Reference& from, std::span<const TokenId> tokens, std::int64_t position) {
    const auto logits = from.logits(std::nullopt, tokens, Tokens{position});
    return std::vector<double>(logits.begin(), logits.end());
  };
  const std::vector<double> trunk_end = at(reference, trunk, 29);
  REQUIRE(reference.computed() == Tokens{30});
  at(reference, trunk, 7);
  REQUIRE(reference.computed() == Tokens{30});
  const std::vector<double> branch_end = at(reference, branch, 24);
  REQUIRE(reference.computed() == Tokens{35});
  REQUIRE(at(reference, trunk, 29) == trunk_end);
  REQUIRE(reference.computed() == Tokens{35});

  Reference other(*model);
  REQUIRE(at(other, branch, 24) == branch_end);
  Reference forgetful(*model, Bytes{1});
  at(forgetful, trunk, 29);
  REQUIRE(at(forgetful, branch, 24) == branch_end);
  REQUIRE(at(forgetful, trunk, 29) == trunk_end);

  const auto adapted = reference.logits("adapter", trunk, Tokens{29});
  REQUIRE(std::vector<double>(adapted.begin(), adapted.end()) != trunk_end);
}

struct Distance {
  double relative_error = 0;  // largest |difference| over the largest |logit| of the position
  double kl = 0;              // largest of a position
};

Distance distance(const model::Model& model, std::size_t count, const char* adapter = nullptr) {
  const std::vector<TokenId> tokens = model::random_tokens(model, count, 33);
  const Tokens capacity{static_cast<std::int64_t>(count)};
  model::Sandbox run(model, Tokens{64}, capacity);
  if (adapter != nullptr) run.extra_key = adapter;
  const std::vector<std::byte> outputs = run.feed(tokens);
  std::vector<float> logits(outputs.size() / sizeof(float));
  std::memcpy(logits.data(), outputs.data(), outputs.size());

  Reference reference(model);
  Distance worst;
  const auto vocab = static_cast<std::size_t>(model.vocab());
  for (std::size_t t = 0; t < count; ++t) {
    const std::span<const float> found = std::span(logits).subspan(t * vocab, vocab);
    const std::optional<std::string_view> key =
        adapter != nullptr ? std::optional<std::string_view>(adapter) : std::nullopt;
    const std::span<const double> exact =
        reference.logits(key, tokens, Tokens{static_cast<std::int64_t>(t)});
    double difference = 0;
    double largest = 0;
    for (std::size_t i = 0; i < vocab; ++i) {
      difference = std::max(difference, std::fabs(exact[i] - static_cast<double>(found[i])));
      largest = std::max(largest, std::fabs(exact[i]));
    }
    worst.relative_error = std::max(worst.relative_error, difference / largest);
    worst.kl = std::max(worst.kl, kl_divergence(log_softmax(exact), log_softmax(found)));
  }
  return worst;
}

TEST_CASE("reference: fp32 stays near fp64, with and without an adapter, whatever the window",
          "[slow]") {
  model::ModelSpec narrow = preset("inkling-pico");
  narrow.window = Tokens{2};
  for (const model::ModelSpec& spec : {preset("inkling-pico"), preset("inkling-nano"), narrow}) {
    const auto model = model::must_make(spec);
    for (const char* adapter : {static_cast<const char*>(nullptr), "adapter-7"}) {
      const Distance worst = distance(*model, 200, adapter);
      REQUIRE(worst.relative_error < 1e-5);
      REQUIRE(worst.kl < 1e-10);
    }
  }
}

// Measured over 600 tokens: see the README.
TEST_CASE("reference: fp32 stays near fp64 for every family of recurrent layers") {
  for (const model::ModelSpec& spec : model::family_presets()) {
    const auto model = model::must_make(spec);
    const Distance worst = distance(*model, 600);
    WARN(model->name() << ": largest relative error " << worst.relative_error << ", largest KL "
                       << worst.kl);
    REQUIRE(worst.relative_error < 1e-5);
    REQUIRE(worst.kl < 1e-10);
  }
}

// Sizes that fill no vector, and every head size that the kernels are compiled for.
TEST_CASE("reference: fp32 stays near fp64 for odd sizes and all head sizes") {
  for (const std::int64_t head_dim : {4, 8, 16, 32, 64, 128}) {
    const std::string text = R"({"model_type": "inkling", "layers": ["full", "swa"],
        "hidden_size": 37, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": )" +
                             std::to_string(head_dim) + R"(, "intermediate_size": 21,
        "vocab_size": 45, "sliding_window_size": 19, "d_rel": 3, "rel_extent": 23,
        "conv_kernel_size": 3, "rms_norm_eps": 1e-5, "logits_mup_width_multiplier": 3})";
    const Result<model::ModelConfig> config = model::parse_model_config(text, "odd");
    REQUIRE(config.ok());
    const Distance worst = distance(model::Decoder(*config, draw_weights(*config, 7), "7"), 90);
    REQUIRE(worst.relative_error < 1e-5);
    REQUIRE(worst.kl < 1e-10);
  }
}

TEST_CASE("reference: fp32 against fp64 over 2,000 tokens of inkling-nano", "[slow]") {
  const Distance worst = distance(*model::must_make(preset("inkling-nano")), 2000);
  WARN("largest relative error " << worst.relative_error << ", largest KL " << worst.kl);
  REQUIRE(worst.relative_error < 1e-5);
  REQUIRE(worst.kl < 1e-10);
}

}  // namespace
}  // namespace lockstep::oracle
