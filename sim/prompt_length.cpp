#include "sim/prompt_length.h"

#include <algorithm>

namespace lockstep::sim {

namespace {

// Prompt and output. Forks and picks are not known before the run: nothing.
Tokens all_tokens_of(const Scenario& scenario, const std::string& request) {
  for (const Step& step : scenario.steps) {
    const auto* submit = std::get_if<SubmitStep>(&step);
    if (submit == nullptr || submit->request != request) continue;
    return prompt_length(scenario, submit->prompt) + submit->decode;
  }
  return Tokens{0};
}

}  // namespace

Tokens prompt_length(const Scenario& scenario, const std::string& prompt) {
  const PromptSpec& spec = scenario.prompts.at(prompt);
  Tokens length;
  if (spec.random) length = spec.random->count;
  if (spec.tokens) length = Tokens{static_cast<std::int64_t>(spec.tokens->size())};
  if (spec.from) length = prompt_length(scenario, *spec.from);
  if (spec.output_of) length = all_tokens_of(scenario, *spec.output_of);
  if (spec.take) length = std::min(length, *spec.take);
  for (const RandomTokens& more : spec.then) length += more.count;
  return length;
}

Tokens longest_request(const Scenario& scenario) {
  Tokens longest;
  for (const Step& step : scenario.steps) {
    const auto* submit = std::get_if<SubmitStep>(&step);
    if (submit == nullptr) continue;
    const Tokens fed = prompt_length(scenario, submit->prompt) + submit->decode - Tokens{1};
    longest = std::max(longest, fed);
  }
  return longest;
}

}  // namespace lockstep::sim
