// Tiny random models of public families, run by code that nobody here wrote: the logits of
// tests/golden (generate.py there) against the fp64 reference and the canonical fp32 decoder.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "catch.h"
#include "core/json.h"
#include "model/checkpoint.h"
#include "model/decoder.h"
#include "model/kernels.h"
#include "model_sandbox.h"
#include "oracle/reference.h"
#include "oracle/reference_recurrent.h"

namespace lockstep::oracle {
namespace {

const std::string kFolder = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/golden/";

struct Golden {
  std::unique_ptr<model::Model> model;
  std::vector<TokenId> tokens;
  std::vector<double> fp64;  // [token][vocab], the public code in fp64
  std::vector<double> fp32;  // the public code as it is
};

Golden read_golden(const std::string& family) {
  const std::string folder = kFolder + family;
  const auto text = [&](const char* name) {
    return std::move(read_text_file(folder + "/" + name, std::size_t{1} << 22)).value();
  };
  Golden golden;
  const Json json = std::move(parse_json(text("golden.json"), family)).value();
  for (const Json& token : *json.find("tokens")->as<Json::Array>()) {
    golden.tokens.emplace_back(static_cast<std::uint32_t>(*token.as<std::int64_t>()));
  }
  const model::TensorFile logits =
      std::move(model::TensorFile::parse(text("logits.safetensors"), family)).value();
  golden.fp64 = logits.values("fp64").value();
  golden.fp32 = logits.values("fp32").value();
  model::Checkpoint read = std::move(model::read_checkpoint(folder)).value();
  golden.model =
      std::make_unique<model::Decoder>(read.config, std::move(read.weights), read.weights_name);
  return golden;
}

std::vector<double> reference_logits(const Golden& golden) {
  Reference reference(*golden.model);
  std::vector<double> all;
  for (std::size_t i = 0; i < golden.tokens.size(); ++i) {
    const auto logits =
        reference.logits(std::nullopt, golden.tokens, Tokens{static_cast<std::int64_t>(i)});
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<double> canonical_logits(const Golden& golden) {
  model::Sandbox sandbox(*golden.model, Tokens{16}, Tokens{96});
  const std::vector<std::byte> bytes = sandbox.feed(golden.tokens);
  std::vector<float> logits(bytes.size() / sizeof(float));
  std::memcpy(logits.data(), bytes.data(), bytes.size());
  return {logits.begin(), logits.end()};
}

// The largest difference, in units of the largest logit of all.
double largest_error(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double difference = 0;
  double scale = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference = std::max(difference, std::fabs(found[i] - expected[i]));
    scale = std::max(scale, std::fabs(expected[i]));
  }
  return difference / scale;
}

constexpr const char* kFamilies[] = {"inkling",    "inkling-moe", "lfm2",      "mamba2",
                                     "qwen3-next", "kimi-linear", "falcon-h1", "nemotron-h"};

// With LOCKSTEP_GOLDEN in the environment the figures of tests/golden/README.md are printed.
TEST_CASE("golden: the fp64 reference and the canonical fp32 agree with public code") {
  for (const char* family : kFamilies) {
    const Golden golden = read_golden(family);
    const double reference = largest_error(reference_logits(golden), golden.fp64);
    const double canonical = largest_error(canonical_logits(golden), golden.fp64);
    const double theirs = largest_error(golden.fp32, golden.fp64);
    INFO(family << ": reference " << reference << ", canonical " << canonical << ", public fp32 "
                << theirs);
    if (std::getenv("LOCKSTEP_GOLDEN") != nullptr) {
      WARN(family << ": reference " << reference << ", canonical " << canonical << ", public fp32 "
                  << theirs);
    }
    REQUIRE(reference < 1e-13);
    REQUIRE(canonical < std::min(1e-5, 4 * theirs));
  }
}

// Sequences of recurrent layers that branch off go back to a state that was kept, and on from it.
TEST_CASE("golden: branches of recurrent models do not disturb each other") {
  for (const char* family : {"qwen3-next", "falcon-h1"}) {
    INFO(family);
    const Golden golden = read_golden(family);
    const std::vector<TokenId> trunk = model::random_tokens(*golden.model, 140, 61);
    const std::vector<TokenId> tail = model::random_tokens(*golden.model, 20, 62);
    Reference reference(*golden.model);
    const auto at = [](Reference& from, std::span<const TokenId> tokens) {
      const Tokens last{static_cast<std::int64_t>(tokens.size()) - 1};
      const auto logits = from.logits(std::nullopt, tokens, last);
      return std::vector<double>(logits.begin(), logits.end());
    };
    const std::vector<double> trunk_end = at(reference, trunk);
    for (const std::size_t length : {1, 63, 64, 65, 100, 128, 139}) {
      std::vector<TokenId> branch(trunk.begin(),
                                  trunk.begin() + static_cast<std::ptrdiff_t>(length));
      branch.insert(branch.end(), tail.begin(), tail.end());
      Reference alone(*golden.model);
      REQUIRE(at(reference, branch) == at(alone, branch));
    }
    REQUIRE(at(reference, trunk) == trunk_end);
  }
}

// The delta rules alone: flash-linear-attention's naive functions, in fp64.
struct DeltaGolden {
  explicit DeltaGolden(const std::string& kind)
      : file(std::move(model::TensorFile::parse(
                           std::move(read_text_file(kFolder + "kernels/" + kind + ".safetensors",
                                                    std::size_t{1} << 20))
                               .value(),
                           kind))
                 .value()) {
    const std::vector<std::int64_t>& keys = file.tensors().at("key").shape;
    tokens = static_cast<std::size_t>(keys[0]);
    heads = static_cast<std::size_t>(keys[1]);
    key_dim = static_cast<std::size_t>(keys[2]);
    value_dim = static_cast<std::size_t>(file.tensors().at("value").shape[2]);
  }

  DeltaInputs inputs(std::size_t token, std::size_t head) const {
    const std::size_t row = token * heads + head;
    const auto part = [&](const char* name, std::size_t width) {
      return file.values(name, row * width, width).value();
    };
    const bool scalar = file.tensors().at("decay").shape.size() == 2;
    DeltaInputs read{part("query", key_dim), part("key", key_dim), part("value", value_dim),
                     part("decay", scalar ? 1 : key_dim), part("beta", 1)[0]};
    for (double& decay : read.decay) decay = std::exp(decay);
    if (scalar) read.decay.assign(key_dim, read.decay[0]);
    return read;
  }

  // Errors of what `step` computes for every token and head, and of the states that it leaves,
  // [head][value][key].
  template <class State, class Step>
  double error(Step step) const {
    std::vector<State> states(heads * value_dim * key_dim);
    std::vector<double> outputs;
    for (std::size_t token = 0; token < tokens; ++token) {
      for (std::size_t head = 0; head < heads; ++head) {
        const auto y = step(inputs(token, head), states.data() + head * value_dim * key_dim);
        outputs.insert(outputs.end(), y.begin(), y.end());
      }
    }
    std::vector<double> transposed;  // theirs are [head][key][value]
    for (std::size_t head = 0; head < heads; ++head) {
      for (std::size_t k = 0; k < key_dim; ++k) {
        for (std::size_t v = 0; v < value_dim; ++v) {
          transposed.push_back(states[(head * value_dim + v) * key_dim + k]);
        }
      }
    }
    return std::max(largest_error(outputs, file.values("output").value()),
                    largest_error(transposed, file.values("state").value()));
  }

  model::TensorFile file;
  std::size_t tokens = 0;
  std::size_t heads = 0;
  std::size_t key_dim = 0;
  std::size_t value_dim = 0;
};

std::vector<float> narrow(const Array& values) {
  return {values.begin(), values.end()};
}

TEST_CASE("golden: the delta rules alone agree with flash-linear-attention's naive functions") {
  for (const char* kind : {"gdn", "kda"}) {
    const DeltaGolden golden(kind);
    const double reference = golden.error<double>(delta_head);
    const auto canonical_step = [](const DeltaInputs& inputs, float* state) {
      std::vector<float> query = narrow(inputs.query);
      for (float& value : query) value /= std::sqrt(static_cast<float>(query.size()));
      const std::vector<float> key = narrow(inputs.key);
      const std::vector<float> value = narrow(inputs.value);
      const std::vector<float> decay = narrow(inputs.decay);
      std::vector<float> y(value.size());
      model::kernels::delta_step(
          {static_cast<std::int64_t>(key.size()), static_cast<std::int64_t>(value.size()),
           decay.data(), static_cast<float>(inputs.beta), query.data(), key.data()},
          value.data(), state, y.data());
      return y;
    };
    const double canonical = golden.error<float>(canonical_step);
    INFO(kind << ": reference " << reference << ", canonical " << canonical);
    if (std::getenv("LOCKSTEP_GOLDEN") != nullptr) {
      WARN(kind << ": reference " << reference << ", canonical " << canonical);
    }
    REQUIRE(reference < 1e-13);
    REQUIRE(canonical < 1e-6);
  }
}

}  // namespace
}  // namespace lockstep::oracle
