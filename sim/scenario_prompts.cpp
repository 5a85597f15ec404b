// Field tables of prompts.
#include "sim/scenario_fields.h"

namespace lockstep::sim {
namespace {

constexpr std::int64_t kMaxPrompt = std::int64_t{1} << 24;
constexpr std::int64_t kMaxToken = 0xffffffff;

// A prompt as its keys stand in the file: "seed" is a sibling of "random".
struct PromptKeys {
  std::optional<Tokens> random;
  std::optional<std::uint64_t> seed;
  std::optional<std::vector<TokenId>> tokens;
  std::optional<std::string> from;
  std::optional<std::string> output_of;
  std::optional<Tokens> take;
  std::vector<RandomTokens> then;
};

std::string decode_prompt(const PromptKeys& keys, PromptSpec& prompt) {
  const int starts = keys.random.has_value() + keys.tokens.has_value() + keys.from.has_value() +
                     keys.output_of.has_value();
  if (starts != 1) return "exactly one of the keys \"random\", \"tokens\", \"from\", \"output_of\"";
  if (keys.seed && !keys.random) return "the key \"seed\" only beside \"random\"";
  if (keys.random) prompt.random = RandomTokens{*keys.random, keys.seed.value_or(0)};
  prompt.tokens = keys.tokens;
  prompt.from = keys.from;
  prompt.output_of = keys.output_of;
  prompt.take = keys.take;
  prompt.then = keys.then;
  return {};
}

PromptKeys encode_prompt(const PromptSpec& prompt) {
  PromptKeys keys;
  if (prompt.random) {
    keys.random = prompt.random->count;
    keys.seed = prompt.random->seed;
  }
  keys.tokens = prompt.tokens;
  keys.from = prompt.from;
  keys.output_of = prompt.output_of;
  keys.take = prompt.take;
  keys.then = prompt.then;
  return keys;
}

Codec<RandomTokens> random_codec() {
  return object<RandomTokens>({
      required_field("random", &RandomTokens::count, integer<Tokens>(1, kMaxPrompt),
                     "number of tokens: 1 + splitmix64(seed) mod (vocab - 1)"),
      field("seed", &RandomTokens::seed, integer<std::uint64_t>(0), "seed of these tokens"),
  });
}

}  // namespace

Codec<std::vector<RandomTokens>> then_codec() {
  using List = std::vector<RandomTokens>;
  const auto decode = [](const RandomTokens& one, List& list) {
    list = {one};
    return std::string();
  };
  const auto encode = [](const List& list) { return list.front(); };
  return either<List>(array_of(random_codec()),
                      mapped<List, RandomTokens>(random_codec(), decode, encode), is_array,
                      [](const List& list) { return list.size() != 1; });
}

Codec<PromptSpec> prompt_codec() {
  const auto keys = object<PromptKeys>({
      optional_field("random", &PromptKeys::random, integer<Tokens>(1, kMaxPrompt),
                     "starts with that many tokens: 1 + splitmix64(seed) mod (vocab - 1)"),
      optional_field("seed", &PromptKeys::seed, integer<std::uint64_t>(0), "seed of \"random\""),
      optional_field("tokens", &PromptKeys::tokens, array_of(integer<TokenId>(0, kMaxToken), 1),
                     "starts with these tokens"),
      optional_field("from", &PromptKeys::from, name_text(), "starts with another prompt"),
      optional_field("output_of", &PromptKeys::output_of, name_text(),
                     "starts with the prompt of a request that has ended and what it generated"),
      optional_field("take", &PromptKeys::take, integer<Tokens>(1, kMaxPrompt),
                     "keeps the first tokens of that start"),
      field("then", &PromptKeys::then, then_codec(), "random tokens that follow"),
  });
  return mapped<PromptSpec, PromptKeys>(keys, decode_prompt, encode_prompt);
}

}  // namespace lockstep::sim
