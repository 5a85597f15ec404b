// How visible a wrongly restored part is: inkling-nano resumes at 1152 tokens with one thing wrong,
// the nano model of each other family at 256, and their logits over the next 256 tokens are
// compared with those of the uninterrupted run. The table is in the README.
//
// KL and logits are judged here (D2, D3). Whatever they say, the restored bytes themselves differ,
// and the comparison of rows (D1) sees that before the first forward.
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "catch.h"
#include "model/numbers.h"
#include "model_sandbox.h"
#include "oracle/kl.h"

namespace lockstep::oracle {
namespace {

using State = std::vector<std::byte>;

constexpr std::size_t kContinuation = 256;
constexpr double kMostKl = 1e-9;

struct Sensitivity {
  RequestComparison values;
  std::size_t differing_positions = 0;
};

// Where a model resumes, with which page.
struct Setting {
  const char* preset;
  Tokens page;
  Tokens boundary;
};
constexpr Setting kInkling{"inkling-nano", Tokens{128}, Tokens{1152}};

struct PageName {
  Component component;
  std::size_t page;
};

class Experiment {
 public:
  explicit Experiment(const Setting& setting)
      : boundary_(setting.boundary),
        model_(model::must_make(spec(setting))),
        run_(*model_, setting.page, setting.boundary + Tokens{kContinuation}) {
    const std::size_t length = boundary_.index();
    const std::size_t page = setting.page.index();
    const std::vector<TokenId> prompt = model::random_tokens(*model_, length, 41);
    const std::span<const TokenId> tokens(prompt);
    run_.feed(tokens.first(length - page));
    page_before = run_.state();
    run_.feed(tokens.subspan(length - page, page - 1));
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
    run_.rewind(boundary_);
    run_.set_state(state);
    const Sensitivity result = compare(run_.feed(continuation_));
    if (missing) std::ranges::copy(kept, run_.row(missing->component, missing->page).begin());
    return result;
  }

  State restored;      // the right state
  State token_before;  // of one token less
  State page_before;   // of one page less

  const model::Model& model() const { return *model_; }

 private:
  static model::ModelSpec spec(const Setting& setting) {
    model::ModelSpec spec;
    spec.preset = setting.preset;
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

  Tokens boundary_;
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

void report(const std::string& name, const Sensitivity& found) {
  WARN(name << ": mean KL " << *found.values.kl_mean << ", max |dlogprob| "
            << *found.values.max_abs_dlogprob << ", differing logits "
            << found.values.differing_logprobs << ", positions " << found.differing_positions << "/"
            << kContinuation);
}

void require_row(const char* name, const Sensitivity& found, Seen expected) {
  report(name, found);
  REQUIRE((found.differing_positions > 0) == (expected != Seen::by_d1_alone));
  REQUIRE((*found.values.kl_mean > kMostKl) == (expected == Seen::by_logits_and_kl));
}

TEST_CASE("sensitivity: an exact restore is exact, everything else is seen", "[slow]") {
  Experiment experiment(kInkling);
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

// A slot of a model with recurrent mixers, as rows: of the state of a head, or the inputs of a
// convolution at one token.
struct StateRow {
  Part part;
  std::size_t first;  // floats
  std::size_t count;
};

std::vector<StateRow> rows_of(const model::Model& model) {
  const model::ModelConfig& config = model.numbers()->config;
  std::vector<StateRow> rows;
  for (const LayerPart& part : model.layout(Component::mamba, Tokens{1}, false).parts) {
    const auto mixer = config.recurrent(part.layer);
    const std::size_t first = part.offset.index() / sizeof(float);
    const std::size_t all = part.size.index() / sizeof(float);
    std::size_t width = all / static_cast<std::size_t>(config.conv_width - 1);
    if (part.part == Part::temporal) {
      const bool ssm = mixer == model::Mixer::mamba2;
      width =
          static_cast<std::size_t>(ssm ? config.shape.mamba2.state : config.shape.delta.key_dim);
    }
    for (std::size_t at = 0; at < all; at += width) rows.push_back({part.part, first + at, width});
  }
  return rows;
}

// The row whose damage is measured: the first one of the state or, without one, the newest inputs
// of the first convolution.
StateRow damaged_row(const model::Model& model, const std::vector<StateRow>& rows) {
  for (const StateRow& row : rows) {
    if (row.part == Part::temporal) return row;
  }
  return rows[static_cast<std::size_t>(model.numbers()->config.conv_width - 2)];
}

State rounded_to_int8(const State& state, const std::vector<StateRow>& rows) {
  std::vector<float> values = floats(state);
  for (const StateRow& row : rows) {
    const std::span<float> some = std::span(values).subspan(row.first, row.count);
    float largest = 0;
    for (const float value : some) largest = std::max(largest, std::fabs(value));
    for (float& value : some) {
      if (largest > 0) value = std::nearbyint(value / largest * 127) / 127 * largest;
    }
  }
  return bytes(values);
}

State zeroed(const State& state, const std::vector<StateRow>& rows) {
  std::vector<float> values = floats(state);
  for (const StateRow& row : rows) std::fill_n(values.begin() + row.first, row.count, 0.0f);
  return bytes(values);
}

// What must be visible in the logits, and what the KL must see as well: another state. How much of
// a damaged one the KL sees depends on the family; that is what the table is for.
void require_seen(const Setting& setting) {
  Experiment experiment(setting);
  const State state = experiment.restored;
  const std::vector<StateRow> rows = rows_of(experiment.model());
  const StateRow one = damaged_row(experiment.model(), rows);
  std::vector<StateRow> inputs = rows;
  std::erase_if(inputs, [](const StateRow& row) { return row.part == Part::temporal; });
  REQUIRE(experiment.resume(state).differing_positions == 0);

  State flipped = state;
  flipped[one.first * sizeof(float)] ^= std::byte{1};
  enum class Must { nothing, differ, exceed_kl };
  const std::tuple<const char*, State, Must> damages[] = {
      {"one bit", flipped, Must::nothing},
      {"state in bf16", rounded_to_bf16(state), Must::differ},
      {"state in int8", rounded_to_int8(state, rows), Must::differ},
      {"one row zeroed", zeroed(state, {one}), Must::differ},
      {"convolutions missing", zeroed(state, inputs), Must::exceed_kl},
      {"state of L-1", experiment.token_before, Must::exceed_kl},
      {"state of L-page", experiment.page_before, Must::exceed_kl},
      {"no state", zeroed(state, rows), Must::exceed_kl},
  };
  for (const auto& [name, damaged, must] : damages) {
    INFO(setting.preset << ", " << name);
    REQUIRE(damaged != state);
    const Sensitivity found = experiment.resume(damaged);
    report(std::string(setting.preset) + ": " + name, found);
    if (must != Must::nothing) REQUIRE(found.differing_positions > 0);
    if (must == Must::exceed_kl) REQUIRE(*found.values.kl_mean > kMostKl);
  }
  REQUIRE(experiment.resume(state).differing_positions == 0);
}

TEST_CASE("sensitivity: the state of every recurrent family", "[slow]") {
  for (const char* preset : {"mamba2-nano", "gdn-nano", "kda-nano", "lfm2-nano", "hybrid-nano"}) {
    require_seen({preset, Tokens{64}, Tokens{256}});
  }
}

}  // namespace
}  // namespace lockstep::oracle
