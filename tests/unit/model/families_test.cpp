// The invariances of the canonical arithmetic for the presets and the golden checkpoints of all
// families: every output bit, every page and every state depends on the tokens alone.
#include "catch.h"
#include "model_families.h"
#include "model_sandbox.h"

namespace lockstep::model {
namespace {

using Outputs = std::vector<std::byte>;

constexpr std::size_t kTokens = 90;

TEST_CASE("families: any split of a prefill equals one prefill, and decoding, bit for bit") {
  for (const ModelSpec& family : families()) {
    const auto model = must_make(family);
    INFO(model->name());
    const std::vector<TokenId> tokens = random_tokens(*model, kTokens, 51);
    Sandbox whole(*model, Tokens{8}, Tokens{96});
    const Outputs expected = whole.feed(tokens);
    const std::vector<std::vector<std::size_t>> splits = {
        {1}, {64, 20}, {17, 3, 50}, std::vector<std::size_t>(kTokens, 1)};
    for (const std::vector<std::size_t>& sizes : splits) {
      Sandbox split(*model, Tokens{8}, Tokens{96}, 5);
      REQUIRE(split.feed_split(tokens, sizes) == expected);
      REQUIRE(split.state() == whole.state());
      REQUIRE(split.pages(Component::full) == whole.pages(Component::full));
      REQUIRE(split.pages(Component::swa) == whole.pages(Component::swa));
    }
    Sandbox descending(*model, Tokens{3}, Tokens{96}, 5, true);
    REQUIRE(descending.feed_split(tokens, {70}) == expected);
  }
}

TEST_CASE(
    "families: a snapshot is the state of a run that stops there, and a run goes on from it") {
  for (const ModelSpec& family : families()) {
    const auto model = must_make(family);
    INFO(model->name());
    const std::vector<TokenId> tokens = random_tokens(*model, 40, 52);
    Sandbox uninterrupted(*model, Tokens{8}, Tokens{40});
    const Outputs all = uninterrupted.feed(tokens);
    for (const std::int64_t depth : {1, 2, 16, 17, 39}) {
      Sandbox run(*model, Tokens{8}, Tokens{40});
      const SnapshotView snapshot{Tokens{depth}, Sandbox::kSnapshot};
      REQUIRE(run.feed(tokens, {&snapshot, 1}) == all);
      Sandbox prefix(*model, Tokens{8}, Tokens{40});
      const auto begin = static_cast<std::size_t>(depth);
      prefix.feed(std::span(tokens).first(begin));
      const std::span<std::byte> taken = run.slot(Sandbox::kSnapshot);
      REQUIRE(Outputs(taken.begin(), taken.end()) == prefix.state());

      const std::span<std::byte> q = prefix.slot(Sandbox::kQ);
      std::copy(taken.begin(), taken.end(), q.begin());
      const Outputs rest = prefix.feed(std::span(tokens).subspan(begin));
      REQUIRE(std::equal(rest.begin(), rest.end(),
                         all.end() - static_cast<std::ptrdiff_t>(rest.size())));
    }
  }
}

TEST_CASE("families: resuming with another state changes the logits") {
  for (const ModelSpec& family : families()) {
    const auto model = must_make(family);
    INFO(model->name());
    const std::vector<TokenId> tokens = random_tokens(*model, 33, 53);
    const auto last = [&](auto damage) {
      Sandbox run(*model, Tokens{8}, Tokens{40});
      const SnapshotView earlier{Tokens{31}, Sandbox::kSnapshot};
      run.feed(std::span(tokens).first(32), {&earlier, 1});
      damage(run.slot(Sandbox::kQ), run.slot(Sandbox::kSnapshot));
      return run.feed(std::span(tokens).last(1));
    };
    using Slot = std::span<std::byte>;
    const Outputs expected = last([](Slot, Slot) {});
    REQUIRE(last([](Slot q, Slot) { std::fill(q.begin(), q.end(), std::byte{0}); }) != expected);
    REQUIRE(last([](Slot q, Slot old) { std::copy(old.begin(), old.end(), q.begin()); }) !=
            expected);
  }
}

}  // namespace
}  // namespace lockstep::model
