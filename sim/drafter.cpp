#include "sim/drafter.h"

namespace lockstep::sim {

ScriptedDrafter::ScriptedDrafter(std::vector<SpeculationStep> script, const model::Model& model)
    : script_(std::move(script)), model_(model) {}

std::vector<TokenId> ScriptedDrafter::propose(const engine::Request& request) {
  Book& book = books_[request.id];
  const SpeculationStep& step = script_[book.decodes++ % script_.size()];
  std::vector<TokenId> tokens = request.tokens;
  const std::size_t known = tokens.size();
  const std::size_t right = known + step.accept.index();
  const std::size_t end = known + step.draft.index();
  while (tokens.size() < std::min(end, right)) tokens.push_back(next(book, request, tokens));
  if (tokens.size() < end) {
    const TokenId wrong = next(book, request, tokens);
    const auto vocab = static_cast<std::uint32_t>(model_.vocab());
    tokens.resize(end, TokenId{(wrong.value() + 1) % vocab});
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(known), tokens.end()};
}

TokenId ScriptedDrafter::next(Book& book, const engine::Request& request,
                              std::span<const TokenId> tokens) const {
  // One page holds all: nothing is memoised, and no page needs a name.
  const Tokens capacity = request.target + Tokens{1};
  if (book.replica == nullptr) {
    book.replica = std::make_unique<oracle::Replica>(model_, std::span<const model::Model* const>(),
                                                     capacity + Tokens{1}, false, Bytes{0});
  }
  oracle::Script script;
  if (request.names.extra_key) script.extra_key = *request.names.extra_key;
  script.tokens = tokens;
  script.capacity = capacity;
  const Tokens end{static_cast<std::int64_t>(tokens.size())};
  book.replica->advance(request.id, script, end);
  return model_.next_token(book.replica->outputs(request.id, end - Tokens{1}, end));
}

}  // namespace lockstep::sim
