#include "sim/trace_tokens.h"

#include "core/check.h"
#include "core/random.h"

namespace lockstep::sim {
namespace {

void append_tokens(SplitMix64 source, Tokens count, std::int64_t vocab,
                   std::vector<TokenId>& tokens) {
  for (Tokens i; i < count; ++i) {
    tokens.emplace_back(
        1 + static_cast<std::uint32_t>(source.below(static_cast<std::uint64_t>(vocab - 1))));
  }
}

}  // namespace

std::vector<TokenId> trace_tokens(const TraceRequest& request, std::uint64_t ordinal,
                                  std::int64_t vocab) {
  CHECK("trace_tokens.vocab", vocab >= 2);
  std::vector<TokenId> tokens;
  tokens.reserve(request.input.index());
  const std::int64_t whole = request.whole_blocks();
  const std::string stream = "trace block " + request.scope;
  for (std::int64_t i = 0; i < whole; ++i) {
    const std::uint64_t id = request.blocks[static_cast<std::size_t>(i)];
    append_tokens(substream(id, stream), request.block, vocab, tokens);
  }
  append_tokens(substream(ordinal, "trace tail"), request.input % request.block, vocab, tokens);
  return tokens;
}

}  // namespace lockstep::sim
