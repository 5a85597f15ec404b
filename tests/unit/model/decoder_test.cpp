// The invariances of the canonical arithmetic: every output bit depends on the tokens alone.
#include "model/decoder.h"

#include <cmath>
#include <cstring>

#include "catch.h"
#include "core/hash.h"
#include "model_sandbox.h"

namespace lockstep::model {
namespace {

using Outputs = std::vector<std::byte>;

std::vector<float> logits_of(const Outputs& outputs) {
  std::vector<float> logits(outputs.size() / sizeof(float));
  std::memcpy(logits.data(), outputs.data(), outputs.size());
  return logits;
}

ModelSpec preset(const char* name) {
  ModelSpec spec;
  spec.preset = name;
  return spec;
}

// inkling-pico, and inkling-nano with a window short enough for a test: both slide.
std::vector<ModelSpec> specs() {
  ModelSpec nano = preset("inkling-nano");
  nano.window = Tokens{40};
  ModelSpec narrow = preset("inkling-pico");
  narrow.window = Tokens{2};
  return {preset("inkling-pico"), nano, narrow};
}

constexpr std::size_t kTokens = 131;

TEST_CASE("decoder: any split of a prefill equals one prefill, and decoding, bit for bit") {
  for (const ModelSpec& spec : specs()) {
    const auto model = must_make(spec);
    const std::vector<TokenId> tokens = random_tokens(*model, kTokens, 21);
    Sandbox whole(*model, Tokens{8}, Tokens{136});
    const Outputs expected = whole.feed(tokens);
    const std::vector<std::vector<std::size_t>> splits = {
        {1}, {64, 64}, {17, 3, 50}, {100, 30}, std::vector<std::size_t>(kTokens, 1)};
    for (const std::vector<std::size_t>& sizes : splits) {
      Sandbox split(*model, Tokens{8}, Tokens{136});
      REQUIRE(split.feed_split(tokens, sizes) == expected);
      REQUIRE(split.state() == whole.state());
      REQUIRE(split.pages(Component::full) == whole.pages(Component::full));
      REQUIRE(split.pages(Component::swa) == whole.pages(Component::swa));
    }
  }
}

TEST_CASE("decoder: page size, order of rows and order of layers in a row change no bit") {
  for (const ModelSpec& spec : specs()) {
    const auto model = must_make(spec);
    const std::vector<TokenId> tokens = random_tokens(*model, kTokens, 22);
    Sandbox contiguous(*model, Tokens{kTokens}, Tokens{kTokens});
    const Outputs expected = contiguous.feed(tokens);
    for (const std::int64_t page : {1, 3, 16, 64}) {
      Sandbox paged(*model, Tokens{page}, Tokens{132}, 5, page == 16);
      REQUIRE(paged.feed_split(tokens, {70}) == expected);
    }
  }
}

// Two sequences in the same memory: the even pages are one's, the odd ones the other's.
struct Pair {
  static constexpr std::size_t kPages = 10;

  Pair(const Model& with, Sandbox& both) : model(with), memory(both.memory()) {
    for (std::uint32_t page = 0; page < 2 * kPages; ++page)
      table[page % 2].push_back(Row{page + 1});
    for (const Row slot : slots) model.clear_slot(both.slot(slot));
  }

  // Feeds some tokens to both, layer by layer in turn, as a batch does.
  std::array<Outputs, 2> feed(const std::array<std::span<const TokenId>, 2>& tokens) {
    std::array<Segment, 2> segments;
    std::array<Outputs, 2> scratch;
    std::array<Outputs, 2> outputs;
    for (std::size_t i = 0; i < 2; ++i) {
      segments[i].start = length[i];
      segments[i].tokens = tokens[i];
      segments[i].full = segments[i].swa = table[i];
      segments[i].q = slots[i];
      scratch[i].resize(tokens[i].size() * model.activation_bytes().index());
      outputs[i].resize(tokens[i].size() * model.output_bytes().index());
      length[i] += Tokens{static_cast<std::int64_t>(tokens[i].size())};
      model.embed(segments[i], scratch[i]);
    }
    for (std::uint32_t layer = 0; layer < model.layers().size(); ++layer) {
      for (std::size_t i = 0; i < 2; ++i) {
        model.run_layer(LayerId{layer}, segments[i], memory, scratch[i]);
      }
    }
    for (std::size_t i = 0; i < 2; ++i) model.head(segments[i], scratch[i], outputs[i]);
    return outputs;
  }

  const Model& model;
  const Memory& memory;
  std::array<std::vector<Row>, 2> table;
  std::array<Row, 2> slots{Sandbox::kQ, Sandbox::kSnapshot};
  std::array<Tokens, 2> length;
};

TEST_CASE("decoder: a sequence in a batch equals the sequence alone") {
  const ModelSpec spec = GENERATE(from_range(
      std::vector<ModelSpec>{preset("inkling-pico"), preset("mamba2-nano"), preset("gdn-nano"),
                             preset("kda-nano"), preset("lfm2-nano"), preset("hybrid-nano")}));
  const auto model = must_make(spec);
  INFO(model->name());
  const std::vector<TokenId> a = random_tokens(*model, 70, 29);
  const std::vector<TokenId> b = random_tokens(*model, 70, 30);
  Sandbox alone_a(*model, Tokens{8}, Tokens{80});
  Sandbox alone_b(*model, Tokens{8}, Tokens{80});
  const Outputs expected_a = alone_a.feed(a);
  const Outputs expected_b = alone_b.feed(b);

  Sandbox both(*model, Tokens{8}, Tokens{160});
  Pair pair(*model, both);
  std::array<Outputs, 2> found;
  for (std::size_t at = 0; at < 70; at += 10) {
    // The first goes in tens; the second lags behind in odd pieces and catches up.
    const std::size_t begin = at == 0 ? 0 : at - 3;
    const std::size_t end = at == 60 ? 70 : at + 7;
    const std::array<Outputs, 2> outputs =
        pair.feed({std::span(a).subspan(at, 10), std::span(b).subspan(begin, end - begin)});
    for (std::size_t i = 0; i < 2; ++i) {
      found[i].insert(found[i].end(), outputs[i].begin(), outputs[i].end());
    }
  }
  REQUIRE(found[0] == expected_a);
  REQUIRE(found[1] == expected_b);
}

TEST_CASE("decoder: SWA pages below the window are not read") {
  for (const ModelSpec& spec : specs()) {
    const auto model = must_make(spec);
    const std::vector<TokenId> tokens = random_tokens(*model, kTokens, 23);
    Sandbox kept(*model, Tokens{8}, Tokens{136}, 3);
    Sandbox released(*model, Tokens{8}, Tokens{136}, 3);
    for (std::size_t at = 0; at < kTokens; at += 7) {
      const auto some = std::span(tokens).subspan(at, std::min<std::size_t>(7, kTokens - at));
      released.release_window(released.length());
      REQUIRE(kept.feed(some) == released.feed(some));
    }
  }
}

TEST_CASE("decoder: a snapshot is the state of a run that stops there") {
  const auto model = must_make(preset("inkling-pico"));
  const std::vector<TokenId> tokens = random_tokens(*model, 40, 24);
  for (const std::int64_t depth : {1, 2, 16, 17, 40}) {
    Sandbox run(*model, Tokens{8}, Tokens{40});
    const SnapshotView snapshot{Tokens{depth}, Sandbox::kSnapshot};
    run.feed(tokens, {&snapshot, 1});
    Sandbox prefix(*model, Tokens{8}, Tokens{40});
    prefix.feed(std::span(tokens).first(static_cast<std::size_t>(depth)));
    const std::span<std::byte> taken = run.slot(Sandbox::kSnapshot);
    REQUIRE(Outputs(taken.begin(), taken.end()) == prefix.state());
  }
}

TEST_CASE("decoder: resuming without one of the restored parts changes the logits") {
  const auto model = must_make(preset("inkling-pico"));
  const std::vector<TokenId> tokens = random_tokens(*model, 33, 25);
  enum class Missing { nothing, full_page, swa_page, state, token };
  const auto resume = [&](Missing missing) {
    Sandbox run(*model, Tokens{8}, Tokens{40});
    const auto zero = [](std::span<std::byte> bytes) {
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
    };
    const SnapshotView earlier{Tokens{31}, Sandbox::kSnapshot};
    run.feed(std::span(tokens).first(32), {&earlier, 1});
    if (missing == Missing::full_page) zero(run.row(Component::full, 0));
    if (missing == Missing::swa_page) zero(run.row(Component::swa, 3));
    if (missing == Missing::state) zero(run.slot(Sandbox::kQ));
    if (missing == Missing::token) {
      const std::span<std::byte> state = run.slot(Sandbox::kSnapshot);
      std::copy(state.begin(), state.end(), run.slot(Sandbox::kQ).begin());
    }
    return run.feed(std::span(tokens).last(1));
  };
  const Outputs expected = resume(Missing::nothing);
  REQUIRE(resume(Missing::full_page) != expected);
  REQUIRE(resume(Missing::swa_page) != expected);
  REQUIRE(resume(Missing::state) != expected);
  REQUIRE(resume(Missing::token) != expected);
}

TEST_CASE("decoder: adapter, weight seed and every token of the prefix reach the logits") {
  const auto model = must_make(preset("inkling-pico"), 7);
  const std::vector<TokenId> tokens = random_tokens(*model, 20, 26);
  const auto last = [](const Model& with, std::span<const TokenId> some, const char* adapter) {
    Sandbox run(with, Tokens{8}, Tokens{24});
    if (adapter != nullptr) run.extra_key = adapter;
    const std::vector<float> logits = logits_of(run.feed(some));
    return std::vector<float>(logits.end() - with.vocab(), logits.end());
  };
  const std::vector<float> expected = last(*model, tokens, nullptr);
  REQUIRE(last(*model, tokens, "") != expected);
  REQUIRE(last(*model, tokens, "a") != expected);
  REQUIRE(last(*model, tokens, "a") != last(*model, tokens, "b"));
  REQUIRE(last(*must_make(preset("inkling-pico"), 8), tokens, nullptr) != expected);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::vector<TokenId> changed = tokens;
    changed[i] = TokenId{(tokens[i].value() + 1) % static_cast<std::uint32_t>(model->vocab())};
    REQUIRE(last(*model, changed, nullptr) != expected);
  }
}

TEST_CASE("decoder: the next token has the largest logit, ties go to the lowest id") {
  const auto model = must_make(preset("inkling-pico"));
  std::vector<float> logits(64, -1.0f);
  logits[9] = logits[40] = 3.0f;
  REQUIRE(model->next_token(std::as_bytes(std::span(logits))) == TokenId{9});
  logits[40] = 3.5f;
  REQUIRE(model->next_token(std::as_bytes(std::span(logits))) == TokenId{40});
}

TEST_CASE("decoder: presets have the sizes that their files promise") {
  const auto nano = must_make(preset("inkling-nano"));
  // 2 full layers, 4 SWA layers; K and V of 4 heads of 8 floats for each of 128 tokens.
  const RowLayout full = nano->layout(Component::full, Tokens{128}, false);
  REQUIRE(full.row_bytes == Bytes{64 * 1024});
  // K and V are arrays of their own, one entry per token, side by side for each layer.
  REQUIRE(full.parts.size() == 4);
  REQUIRE((full.parts[1].layer == LayerId{2} && full.parts[1].offset == Bytes{16 * 1024}));
  REQUIRE(full.range_of(LayerId{5}).offset == Bytes{32 * 1024});
  REQUIRE(full.range_of(LayerId{5}).size == Bytes{32 * 1024});
  REQUIRE(nano->layout(Component::swa, Tokens{128}, false).row_bytes == Bytes{128 * 1024});
  // 6 layers x 3 inputs x (32 + 32 + 64 + 64) channels x 4 bytes.
  REQUIRE(nano->layout(Component::mamba, Tokens{1}, false).row_bytes == Bytes{13824});
  REQUIRE(nano->output_bytes() == Bytes{256 * 4});
  REQUIRE(nano->geometry().window == Tokens{512});
  REQUIRE(nano->geometry().state_chunk == Tokens{64});
  REQUIRE((nano->layers()[0].attention == Attention::swa && nano->layers()[0].recurrent));
  REQUIRE(nano->has_logits());
  REQUIRE(nano->numbers()->config.full_extent() == 1024);

  const auto pico = must_make(preset("inkling-pico"));
  REQUIRE(pico->geometry().state_chunk == Tokens{4});
  REQUIRE(pico->layers().size() == 4);
}

TEST_CASE("decoder: logits spread by about 2, so that probabilities are neither flat nor sharp") {
  const auto model = must_make(preset("inkling-nano"));
  Sandbox run(*model, Tokens{64}, Tokens{256});
  const std::vector<float> logits = logits_of(run.feed(random_tokens(*model, 256, 27)));
  double sum = 0;
  double squares = 0;
  for (const float logit : logits) {
    sum += logit;
    squares += static_cast<double>(logit) * logit;
  }
  const double mean = sum / static_cast<double>(logits.size());
  const double deviation = std::sqrt(squares / static_cast<double>(logits.size()) - mean * mean);
  REQUIRE(deviation > 1.5);
  REQUIRE(deviation < 2.5);
}

// The value is what this code gives; what the test says is that every compiler, optimisation level
// and sanitizer build that runs it agrees on all bits.
TEST_CASE("decoder: every build computes the same bits") {
  const auto model = must_make(specs()[1]);
  Sandbox run(*model, Tokens{16}, Tokens{304}, 5);
  const Outputs outputs = run.feed_split(random_tokens(*model, 300, 28), {77, 1, 1, 130});
  REQUIRE(xxh3(outputs) == 0x92737cce0bdcdb83ull);
}

}  // namespace
}  // namespace lockstep::model
