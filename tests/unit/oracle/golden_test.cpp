// Tiny random models of public families, run by code that nobody here wrote: the logits of
// tests/golden (generate.py there) against the fp64 reference and the canonical fp32 decoder.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "catch.h"
#include "core/json.h"
#include "model/checkpoint.h"
#include "model/decoder.h"
#include "model_sandbox.h"
#include "oracle/reference.h"

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
  model::Sandbox sandbox(*golden.model, Tokens{16}, Tokens{64});
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

// What the public code's own fp32 is off by (tests/golden/README.md has all figures), and what is
// asked of the reference: 1e-10, or what one rounding of the weights leaves where multipliers are
// worked into them.
struct Expected {
  const char* family;
  double reference;
};
constexpr Expected kFamilies[] = {
    {"inkling", 1e-12},    {"inkling-moe", 1e-12}, {"lfm2", 1e-12},      {"mamba2", 1e-12},
    {"qwen3-next", 1e-12}, {"kimi-linear", 1e-12}, {"falcon-h1", 1e-12}, {"nemotron-h", 1e-12},
};

TEST_CASE("golden: the fp64 reference and the canonical fp32 agree with public code") {
  for (const Expected& expected : kFamilies) {
    const Golden golden = read_golden(expected.family);
    const double reference = largest_error(reference_logits(golden), golden.fp64);
    const double canonical = largest_error(canonical_logits(golden), golden.fp64);
    const double theirs = largest_error(golden.fp32, golden.fp64);
    INFO(expected.family << ": reference " << reference << ", canonical " << canonical
                         << ", public fp32 " << theirs);
    if (std::getenv("LOCKSTEP_GOLDEN") != nullptr) {
      WARN(expected.family << ": reference " << reference << ", canonical " << canonical
                           << ", public fp32 " << theirs);
    }
    REQUIRE(reference < expected.reference);
    REQUIRE(canonical < 1e-5);
  }
}

}  // namespace
}  // namespace lockstep::oracle
