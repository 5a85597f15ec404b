// How visible a wrongly restored part is: inkling-nano resumes at 1152 tokens with one thing wrong,
// and its logits over the next 256 tokens are compared with those of the uninterrupted run.
//
// KL and logits are judged here (D2, D3). Whatever they say, the restored bytes themselves differ,
// and the comparison of rows (D1) sees that before the first forward.
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "catch.h"
#include "model_sandbox.h"
#include "oracle/kl.h"

namespace lockstep::oracle {
namespace {

using State = std::vector<std::byte>;

constexpr Tokens kPage{128};
constexpr Tokens kBoundary{1152};
constexpr std::size_t kContinuation = 256;
constexpr double kMostKl = 1e-9;

struct Sensitivity {
  RequestComparison values;
  std::size_t differing_positions = 0;
};

struct PageName {
  Component component;
  std::size_t page;
};

class Experiment {
 public:
  Experiment() : model_(model::must_make(spec())), run_(*model_, kPage, Tokens{1408}) {
    const std::vector<TokenId> prompt =
        model::random_tokens(*model_, static_cast<std::size_t>(kBoundary.value()), 41);
    const std::span<const TokenId> tokens(prompt);
    run_.feed(tokens.first(1024));
    page_before = run_.state();
    run_.feed(tokens.subspan(1024, 127));
    token_before = run_.state();
    std::vector<std::byte> output = run_.feed(tokens.last(1));
    restored = run_.state();
    for (std::size_t i = 0; i < kContinuation; ++i) {
      continuation_.push_back(model_->next_token(output));
      output = run_.feed(std::span(continuation_).last(1));
      expected_.push_back(output);
    }
  }

  // Resumes with `state`, and with one page of zeros if `missing` names one.
  Sensitivity resume(const State& state, std::optional<PageName> missing = {}) {
    State kept;
    if (missing) {
      const std::span<std::byte> row = run_.row(missing->component, missing->page);
      kept.assign(row.begin(), row.end());
      std::ranges::fill(row, std::byte{0});
    }
    run_.rewind(kBoundary);
    run_.set_state(state);
    const Sensitivity result = compare(run_.feed(continuation_));
    if (missing) std::ranges::copy(kept, run_.row(missing->component, missing->page).begin());
    return result;
  }

  State restored;      // the right state
  State token_before;  // of 1151 tokens
  State page_before;   // of 1024 tokens

 private:
  static model::ModelSpec spec() {
    model::ModelSpec spec;
    spec.preset = "inkling-nano";
    return spec;
  }

  Sensitivity compare(const std::vector<std::byte>& outputs) const {
    const auto vocab = static_cast<std::size_t>(model_->vocab());
    std::vector<float> found(vocab);
    std::vector<float> right(vocab);
    LogprobTally tally;
    Sensitivity result;
    for (std::size_t i = 0; i < kContinuation; ++i) {
      std::memcpy(found.data(), outputs.data() + i * vocab * sizeof(float), vocab * sizeof(float));
      std::memcpy(right.data(), expected_[i].data(), vocab * sizeof(float));
      if (count_differing(right, found) > 0) ++result.differing_positions;
      tally.add_replica(right, found, std::nullopt);
    }
    tally.write_to(result.values);
    return result;
  }

  std::unique_ptr<model::Model> model_;
  model::Sandbox run_;
  std::vector<TokenId> continuation_;
  std::vector<std::vector<std::byte>> expected_;
};

std::vector<float> floats(const State& state) {
  std::vector<float> values(state.size() / sizeof(float));
  std::memcpy(values.data(), state.data(), state.size());
  return values;
}

State bytes(const std::vector<float>& values) {
  const auto raw = std::as_bytes(std::span(values));
  return {raw.begin(), raw.end()};
}

// The last mantissa bit of one K input of layer 0; inputs are 32 floats, oldest first.
State one_bit_flipped(State state, std::size_t input) {
  state[input * 32 * sizeof(float)] ^= std::byte{1};
  return state;
}

State rounded_to_bf16(const State& state) {
  std::vector<float> values = floats(state);
  for (float& value : values) {
    std::uint32_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    word = (word + 0x7fffu + (word >> 16 & 1u)) & 0xffff0000u;
    std::memcpy(&value, &word, sizeof word);
  }
  return bytes(values);
}

// The newest attention input of layer 0. A layer has 3 rows each of K (32), V (32), attention (64)
// and MLP (64).
State one_row_zeroed(const State& state) {
  std::vector<float> values = floats(state);
  const auto row = values.begin() + 3 * 32 + 3 * 32 + 2 * 64;
  std::fill(row, row + 64, 0.0f);
  return bytes(values);
}

// One of the four convolutions, in every layer.
State key_convolution_missing(const State& state) {
  std::vector<float> values = floats(state);
  for (std::size_t layer = 0; layer < 6; ++layer) {
    const auto rows = values.begin() + static_cast<std::ptrdiff_t>(layer * 3 * 192);
    std::fill(rows, rows + 3 * 32, 0.0f);
  }
  return bytes(values);
}

// Which judges of the outputs see it. D1 sees the restored bytes themselves in every case.
enum class Seen { by_d1_alone, by_logits, by_logits_and_kl };

void require_row(const char* name, const Sensitivity& found, Seen expected) {
  WARN(name << ": mean KL " << *found.values.kl_mean << ", max |dlogprob| "
            << *found.values.max_abs_dlogprob << ", differing logits "
            << found.values.differing_logprobs << ", positions " << found.differing_positions << "/"
            << kContinuation);
  REQUIRE((found.differing_positions > 0) == (expected != Seen::by_d1_alone));
  REQUIRE((*found.values.kl_mean > kMostKl) == (expected == Seen::by_logits_and_kl));
}

TEST_CASE("sensitivity: an exact restore is exact, everything else is seen", "[slow]") {
  Experiment experiment;
  const State state = experiment.restored;
  const Sensitivity exact = experiment.resume(state);
  REQUIRE(exact.differing_positions == 0);
  REQUIRE(exact.values.kl_max == 0.0);
  REQUIRE(exact.values.max_abs_dlogprob == 0.0);

  // A bit of the oldest input is rounded away in the one token that reads it.
  REQUIRE(one_bit_flipped(state, 0) != state);
  require_row("one bit of the oldest input", experiment.resume(one_bit_flipped(state, 0)),
              Seen::by_d1_alone);
  require_row("one bit of the newest input", experiment.resume(one_bit_flipped(state, 2)),
              Seen::by_logits);
  const Seen everywhere = Seen::by_logits_and_kl;
  require_row("state in bf16", experiment.resume(rounded_to_bf16(state)), everywhere);
  require_row("one conv row zeroed", experiment.resume(one_row_zeroed(state)), everywhere);
  require_row("K convolution missing", experiment.resume(key_convolution_missing(state)),
              everywhere);
  require_row("state of L-1", experiment.resume(experiment.token_before), everywhere);
  require_row("state of L-page", experiment.resume(experiment.page_before), everywhere);
  require_row("no state", experiment.resume(State(state.size())), everywhere);
  require_row("first FULL page zeroed", experiment.resume(state, PageName{Component::full, 0}),
              everywhere);
  require_row("last SWA page zeroed", experiment.resume(state, PageName{Component::swa, 8}),
              everywhere);
  REQUIRE(experiment.resume(state).differing_positions == 0);
}

}  // namespace
}  // namespace lockstep::oracle
