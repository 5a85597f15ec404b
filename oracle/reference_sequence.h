// One token sequence of the fp64 reference, with everything that later tokens need of earlier ones.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "model/numbers.h"
#include "oracle/reference_recurrent.h"

namespace lockstep::oracle {

struct ReferenceMlp {
  Array gate, up, down;
};

// The weights of one layer in fp64; matrices [inputs][outputs], convolutions [tap][channel].
struct ReferenceLayer {
  model::DecoderShape shape;  // with the heads of this layer
  bool attends = true;
  bool sliding = false;
  std::optional<ReferenceRecurrent> recurrent;
  model::Mlp mlp_kind = model::Mlp::dense;
  Array input_norm, query, gate, latent, latent_norm, key, value, relative;
  Array query_norm, key_norm, profiles, output;
  Array mlp_norm;
  ReferenceMlp mlp;
  Array router, choice_bias;
  double router_scale = 1;
  std::vector<ReferenceMlp> routed, shared;
  Array key_conv, value_conv, attention_conv, mlp_conv;
};

struct ReferenceWeights {
  explicit ReferenceWeights(const model::Numbers& numbers);

  const model::Numbers& numbers;
  Array embedding, embedding_norm, final_norm, head;
  std::vector<ReferenceLayer> layers;
};

class ReferenceSequence {
 public:
  ReferenceSequence(const ReferenceWeights& weights, std::optional<std::string_view> extra_key);

  // Runs the next token through all layers.
  void append(TokenId token);
  // Forgets all but the first `length` tokens.
  void truncate(Tokens length);

  const std::optional<std::string>& extra_key() const { return extra_key_; }
  std::span<const TokenId> tokens() const { return tokens_; }
  Tokens length() const { return Tokens{static_cast<std::int64_t>(tokens_.size())}; }
  std::span<const double> logits(Tokens position) const;
  // Memory that one token takes.
  Bytes token_bytes() const;

 private:
  // For every token so far: the raw inputs of the four convolutions, and what attention reads.
  struct History {
    Array key_inputs, value_inputs, attention_inputs, mlp_inputs;  // [token][channel]
    Array keys, values;                                            // [token][kv head][dim]
    RecurrentHistory recurrent;
    std::vector<Array> states;  // the recurrent one, after each kStateEvery tokens
  };

  static constexpr std::size_t kStateEvery = 64;

  bool recurrent() const;
  // Forgets all but the first `length` tokens, a multiple of kStateEvery if a layer is recurrent.
  void cut(std::size_t length);
  Array attention(const ReferenceLayer& layer, History& history, const Array& normed);
  Array mlp(const ReferenceLayer& layer, History& history, const Array& normed);
  static Array dense(const model::DecoderShape& shape, const ReferenceMlp& mlp,
                     const Array& normed);
  static Array mixture(const ReferenceLayer& layer, const Array& normed);
  Array attend(const ReferenceLayer& layer, const History& history, const Array& query,
               const Array& relative) const;

  const ReferenceWeights* weights_;
  std::optional<std::string> extra_key_;
  Array adapter_;
  std::vector<TokenId> tokens_;
  std::vector<History> layers_;
  Array logits_;  // [token][vocab]
};

}  // namespace lockstep::oracle
