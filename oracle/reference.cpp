#include "oracle/reference.h"

#include <algorithm>
#include <list>

#include "core/check.h"
#include "oracle/reference_sequence.h"

namespace lockstep::oracle {
namespace {

// The length of the longest prefix that both have.
std::size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  const auto end =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin());
  return static_cast<std::size_t>(end.first - a.begin());
}

const model::Numbers& numbers_of(const model::Model& model) {
  CHECK("reference.numeric_model", model.numbers() != nullptr);
  return *model.numbers();
}

}  // namespace

struct Reference::Impl {
  Impl(const model::Model& model, Bytes limit) : weights(numbers_of(model)), memo_limit(limit) {}

  // A sequence that `tokens` starts with, as long as the memo can provide.
  ReferenceSequence& sequence_for(std::optional<std::string_view> extra_key,
                                  std::span<const TokenId> tokens);
  void forget_oldest();

  ReferenceWeights weights;
  Bytes memo_limit;
  std::list<ReferenceSequence> sequences;  // last used first
  Tokens computed;
};

ReferenceSequence& Reference::Impl::sequence_for(std::optional<std::string_view> extra_key,
                                                 std::span<const TokenId> tokens) {
  auto best = sequences.end();
  std::size_t best_length = 0;
  for (auto sequence = sequences.begin(); sequence != sequences.end(); ++sequence) {
    if (sequence->extra_key() != extra_key) continue;
    const std::size_t length = common_prefix(sequence->tokens(), tokens);
    if (length > best_length) {
      best = sequence;
      best_length = length;
    }
    if (length + 1 >= tokens.size()) break;  // at most one token to compute: the usual case
  }
  if (best == sequences.end()) {
    sequences.emplace_front(weights, extra_key);
  } else if (best_length == best->tokens().size() || best_length == tokens.size()) {
    sequences.splice(sequences.begin(), sequences, best);
  } else {
    // It goes on differently: branch off, its own end may still be asked for.
    sequences.push_front(*best);
    sequences.front().truncate(Tokens{static_cast<std::int64_t>(best_length)});
  }
  return sequences.front();
}

void Reference::Impl::forget_oldest() {
  Bytes held;
  for (auto sequence = sequences.begin(); sequence != sequences.end(); ++sequence) {
    held += sequence->token_bytes() * sequence->length().value();
    if (held > memo_limit && sequence != sequences.begin()) {
      sequences.erase(sequence, sequences.end());
      return;
    }
  }
}

Reference::Reference(const model::Model& model, Bytes memo_limit)
    : impl_(std::make_unique<Impl>(model, memo_limit)) {}

Reference::~Reference() = default;

std::span<const double> Reference::logits(std::optional<std::string_view> extra_key,
                                          std::span<const TokenId> tokens, Tokens position) {
  CHECK("reference.position", position.index() < tokens.size());
  const std::span<const TokenId> wanted = tokens.first(position.index() + 1);
  ReferenceSequence& sequence = impl_->sequence_for(extra_key, wanted);
  while (sequence.length().index() < wanted.size()) {
    sequence.append(wanted[sequence.length().index()]);
    ++impl_->computed;
  }
  impl_->forget_oldest();
  return sequence.logits(position);
}

Tokens Reference::computed() const {
  return impl_->computed;
}

}  // namespace lockstep::oracle
