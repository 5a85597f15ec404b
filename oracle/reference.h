// The fp64 reference: a second implementation of the numeric decoder, token by token, plain loops
// over plain arrays. It shares configuration and weights with the model and nothing else, so that
// an error in the kernels shows (D3).
//
// What it verifies: the mathematics of the logits, to about 1e-9 in KL. What it does not: single
// bits (the replica does), and errors in how weights are drawn or read, which both sides share (the
// goldens of public code see those that are read).
//
// Teacher-forced: it is given tokens. Sequences are memoised, so that every position of a prefix
// that several requests share is computed once:
//
//   sequences   | A: 1280 tokens | A + 256 others ... | B ... |      oldest use is forgotten first
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/ids.h"
#include "model/model.h"

namespace lockstep::oracle {

class Reference {
 public:
  // `model` outlives the reference. REQUIRES: model.numbers() is not null.
  explicit Reference(const model::Model& model, Bytes memo_limit = Bytes{512 << 20});
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  // The logits after tokens[0] .. tokens[position]: valid until the next call. Later tokens are not
  // looked at. REQUIRES: position < tokens.size().
  std::span<const double> logits(std::optional<std::string_view> extra_key,
                                 std::span<const TokenId> tokens, Tokens position);

  // How many tokens have been run through the layers so far.
  Tokens computed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::oracle
