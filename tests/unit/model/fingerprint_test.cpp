#include "model/fingerprint.h"

#include <cstring>

#include "catch.h"
#include "model_sandbox.h"

namespace lockstep::model {
namespace {

using Bytes8 = std::vector<std::byte>;

std::uint64_t word(std::span<const std::byte> bytes, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

std::uint64_t last_word(const Bytes8& bytes) {
  return word(bytes, bytes.size() / 8 - 1);
}

ModelSpec small_window() {
  ModelSpec spec;
  spec.window = Tokens{6};
  return spec;
}

TEST_CASE("fingerprint: hidden words equal those of tests/golden/fingerprint.py") {
  const auto model = must_make({}, 7, Tokens{4});
  std::vector<TokenId> tokens;
  for (std::uint32_t id = 1; id <= 100; ++id) tokens.push_back(TokenId{id});
  Sandbox plain(*model, Tokens{4}, Tokens{100});
  const Bytes8 hidden = plain.feed(tokens);
  REQUIRE(word(hidden, 0) == 0xc7db80621ff38bd0ull);
  REQUIRE(word(hidden, 69) == 0xf39324a60305a617ull);
  REQUIRE(word(hidden, 99) == 0x0062a609cfaaf137ull);
  REQUIRE(model->next_token(std::span(hidden).subspan(0, 8)) == TokenId{48492});
  REQUIRE(model->next_token(std::span(hidden).subspan(69 * 8, 8)) == TokenId{22805});
  REQUIRE(model->next_token(std::span(hidden).subspan(99 * 8, 8)) == TokenId{33710});

  Sandbox adapted(*model, Tokens{4}, Tokens{100});
  adapted.extra_key = "adapter-7";
  REQUIRE(last_word(adapted.feed(tokens)) == 0x8d3e231ab0cbccafull);
}

TEST_CASE("fingerprint: any split of a prefill equals one prefill, and decoding") {
  for (const std::int64_t window : {1, 2, 3, 6, 64}) {
    ModelSpec spec;
    spec.window = Tokens{window};
    const auto model = must_make(spec);
    const std::vector<TokenId> tokens = random_tokens(*model, 57, 11);
    Sandbox whole(*model, Tokens{4}, Tokens{60});
    const Bytes8 expected = whole.feed(tokens);
    const std::vector<std::vector<std::size_t>> splits = {
        {1}, {4}, {3, 5}, {16, 16, 16}, {31, 1, 1}, std::vector<std::size_t>(57, 1)};
    for (const std::vector<std::size_t>& sizes : splits) {
      Sandbox split(*model, Tokens{4}, Tokens{60});
      REQUIRE(split.feed_split(tokens, sizes) == expected);
      REQUIRE(split.state() == whole.state());
      REQUIRE(split.pages(Component::full) == whole.pages(Component::full));
      REQUIRE(split.pages(Component::swa) == whole.pages(Component::swa));
    }
  }
}

TEST_CASE("fingerprint: scattered pages equal one contiguous page of the whole sequence") {
  const auto model = must_make(small_window());
  const std::vector<TokenId> tokens = random_tokens(*model, 57, 12);
  Sandbox contiguous(*model, Tokens{57}, Tokens{57});
  Sandbox scattered(*model, Tokens{4}, Tokens{60}, 7, true);
  REQUIRE(contiguous.feed_split(tokens, {10, 9}) == scattered.feed_split(tokens, {23}));
}

TEST_CASE("fingerprint: the cache page takes part in the arithmetic, the memory's page does not") {
  const auto four = must_make({}, 7, Tokens{4});
  const auto eight = must_make({}, 7, Tokens{8});
  const std::vector<TokenId> tokens = random_tokens(*four, 40, 13);
  Sandbox a(*four, Tokens{4}, Tokens{40});
  Sandbox b(*four, Tokens{8}, Tokens{40});
  Sandbox c(*eight, Tokens{8}, Tokens{40});
  const Bytes8 expected = a.feed(tokens);
  REQUIRE(b.feed(tokens) == expected);
  REQUIRE(c.feed(tokens) != expected);
  REQUIRE(four->fingerprint() != eight->fingerprint());
}

TEST_CASE("fingerprint: SWA pages below the window are not read") {
  for (const std::int64_t window : {1, 2, 5, 6, 9}) {
    ModelSpec spec;
    spec.window = Tokens{window};
    const auto model = must_make(spec);
    const std::vector<TokenId> tokens = random_tokens(*model, 40, 14);
    Sandbox kept(*model, Tokens{4}, Tokens{40}, 3);
    Sandbox released(*model, Tokens{4}, Tokens{40}, 3);
    for (const TokenId& token : tokens) {
      released.release_window(released.length());
      REQUIRE(kept.feed({&token, 1}) == released.feed({&token, 1}));
    }
  }
}

TEST_CASE("fingerprint: every FULL page and every SWA page of the window is read") {
  const auto model = must_make(small_window());
  const std::vector<TokenId> tokens = random_tokens(*model, 25, 15);
  const std::span<const TokenId> prefix = std::span(tokens).first(24);
  Sandbox good(*model, Tokens{4}, Tokens{28});
  good.feed(prefix);
  const Bytes8 expected = good.feed(std::span(tokens).last(1));
  const auto output_with_bad_page = [&](Component component, std::size_t page) {
    Sandbox bad(*model, Tokens{4}, Tokens{28});
    bad.feed(prefix);
    for (std::byte& byte : bad.row(component, page)) byte = std::byte{0};
    return bad.feed(std::span(tokens).last(1));
  };
  for (std::size_t page = 0; page < 6; ++page) {
    REQUIRE(output_with_bad_page(Component::full, page) != expected);
  }
  // Token 24 sees 19..24: page 4 (its last position is 19) and page 5.
  REQUIRE(output_with_bad_page(Component::swa, 3) == expected);
  REQUIRE(output_with_bad_page(Component::swa, 4) != expected);
  REQUIRE(output_with_bad_page(Component::swa, 5) != expected);
}

TEST_CASE("fingerprint: a snapshot is the state of a run that stops there") {
  const auto model = must_make({});
  const std::vector<TokenId> tokens = random_tokens(*model, 30, 16);
  for (const std::int64_t depth : {1, 2, 17, 30}) {
    Sandbox run(*model, Tokens{4}, Tokens{32});
    const SnapshotView snapshot{Tokens{depth}, Sandbox::kSnapshot};
    run.feed(tokens, {&snapshot, 1});
    Sandbox prefix(*model, Tokens{4}, Tokens{32});
    prefix.feed(std::span(tokens).first(static_cast<std::size_t>(depth)));
    const std::span<std::byte> taken = run.slot(Sandbox::kSnapshot);
    REQUIRE(Bytes8(taken.begin(), taken.end()) == prefix.state());
  }
}

TEST_CASE("fingerprint: a state of another prefix differs in the temporal and in the conv part") {
  const auto model = must_make({});
  const RowLayout layout = model->layout(Component::mamba, Tokens{1}, false);
  const std::vector<TokenId> same(12, TokenId{5});
  std::vector<TokenId> varied = random_tokens(*model, 12, 17);
  const auto state = [&](std::span<const TokenId> tokens, const char* adapter = nullptr) {
    Sandbox run(*model, Tokens{4}, Tokens{16});
    if (adapter != nullptr) run.extra_key = adapter;
    run.feed(tokens);
    return run.state();
  };
  const auto differs_everywhere = [&](const Bytes8& a, const Bytes8& b) {
    return std::all_of(layout.parts.begin(), layout.parts.end(), [&](const LayerPart& part) {
      return std::memcmp(a.data() + part.offset.index(), b.data() + part.offset.index(),
                         part.size.index()) != 0;
    });
  };
  // One token more or less, also where all tokens are equal, so that only the count tells.
  REQUIRE(differs_everywhere(state(same), state(std::span(same).first(11))));
  REQUIRE(differs_everywhere(state(varied), state(std::span(varied).first(11))));
  const Bytes8 expected = state(varied);
  std::vector<TokenId> twice = varied;
  twice.insert(twice.begin() + 9, twice[9]);
  REQUIRE(differs_everywhere(state(std::span(twice).first(12)), expected));
  std::vector<TokenId> swapped = varied;
  std::swap(swapped[2], swapped[7]);
  REQUIRE(differs_everywhere(state(swapped), expected));
  REQUIRE(differs_everywhere(state(varied, "adapter"), expected));
  REQUIRE(differs_everywhere(state(varied, ""), expected));
  REQUIRE(differs_everywhere(state(varied, ""), state(varied, "adapter")));
}

TEST_CASE("fingerprint: temporal and conv part both reach the output") {
  const auto model = must_make({});
  const RowLayout layout = model->layout(Component::mamba, Tokens{1}, false);
  const std::vector<TokenId> tokens = random_tokens(*model, 13, 18);
  const auto last = [&](std::optional<LayerPart> dropped) {
    Sandbox run(*model, Tokens{4}, Tokens{16});
    const Bytes8 empty = run.state();
    run.feed(std::span(tokens).first(12));
    if (dropped) {
      std::memcpy(run.slot(Sandbox::kQ).data() + dropped->offset.index(),
                  empty.data() + dropped->offset.index(), dropped->size.index());
    }
    return run.feed(std::span(tokens).last(1));
  };
  const Bytes8 expected = last({});
  REQUIRE(layout.parts.size() == 4);
  for (const LayerPart& part : layout.parts) REQUIRE(last(part) != expected);
}

TEST_CASE("fingerprint: the weight seed changes the outputs and the fingerprint") {
  const auto a = must_make({}, 1);
  const auto b = must_make({}, 2);
  const std::vector<TokenId> tokens = random_tokens(*a, 3, 19);
  REQUIRE(Sandbox(*a, Tokens{4}, Tokens{4}).feed(tokens) !=
          Sandbox(*b, Tokens{4}, Tokens{4}).feed(tokens));
  REQUIRE(a->fingerprint() != b->fingerprint());
}

}  // namespace
}  // namespace lockstep::model
