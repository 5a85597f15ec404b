// The fingerprint model: integers modulo 2^64 in the shape of a hybrid decoder. Every word that it
// leaves behind depends on the whole prefix, so that a row or a state of another prefix shows.
//
//   absorb(h, w) = y ^ (y >> 32) with y = (h ^ w) * 0x9fb21c651e98df25; several words in turn
//   mix(h) = the first output of splitmix64(h)
//   e, k[0], k[1], ... = outputs of the weight seed's substream "weights": one key for the
//   embedding and one for each layer
//
// Embedding, where `adapter` is 0 or the first output of the substream `extra_key` of e:
//   x = mix(absorb(e, adapter, token))
// Attention layer; 0 stands for row(t-1) where t does not see t-1:
//   row(t) = mix(absorb(k, t, token, x, row(t-1)))
//   fold(t) = sum of row(i) * (i * 0x9e3779b97f4a7c15 | 1) over each i in range of t that is in
//             the same cache page as t or the last position of its cache page
//   x = mix(absorb(~k, x, fold(t)))
// Recurrent layer, where conv holds the last Wc-1 inputs:
//   update = mix(absorb(k, conv..., tag, x))
//   state = mix(absorb(state, update, count))
//   count = tag = count + 1; conv loses its oldest word and gains x
//   x = mix(absorb(~k, x, state))
// Output: x after the last layer. The next token is mix(x) modulo the vocabulary.
//
// A page row holds one word per layer and token. A slot holds, for each layer, the temporal part
// {state, count} and the conv part {inputs, oldest first; tag}. After zero tokens count and tag
// are 0 and the other words kEmpty.
#pragma once

#include "model/config.h"
#include "model/model.h"

namespace lockstep::model {

class Fingerprint : public Model {
 public:
  // `cache_page` takes part in the arithmetic, see fold(t); memory may be paged otherwise.
  Fingerprint(const ModelConfig& config, std::uint64_t weight_seed, Tokens cache_page);

  Bytes activation_bytes() const override { return Bytes{8}; }
  Bytes output_bytes() const override { return Bytes{8}; }
  void embed(const Segment& segment, std::span<std::byte> activations) const override;
  void run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                 std::span<std::byte> activations) const override;
  void head(const Segment& segment, std::span<const std::byte> activations,
            std::span<std::byte> outputs) const override;
  TokenId next_token(std::span<const std::byte> output) const override;
  void clear_slot(std::span<std::byte> slot) const override;
  bool has_logits() const override { return false; }

 protected:
  // What a version on a device needs.
  Tokens cache_page() const { return cache_page_; }
  std::int64_t conv_words() const { return static_cast<std::int64_t>(conv_words_); }
  std::uint64_t layer_key(LayerId layer) const { return layer_keys_[layer.index()]; }
  // The key of the embedding with the segment's adapter in it.
  std::uint64_t embedding_key_of(const Segment& segment) const;

 private:
  void declare_layer(LayerId layer);
  void attend(LayerId layer, const Segment& segment, const Memory& memory,
              std::span<std::uint64_t> hidden) const;
  void recur(LayerId layer, const Segment& segment, const Memory& memory,
             std::span<std::uint64_t> hidden) const;

  Tokens cache_page_;
  std::size_t conv_words_;  // inputs that a slot keeps per layer
  std::uint64_t embedding_key_ = 0;
  std::vector<std::uint64_t> layer_keys_;
};

}  // namespace lockstep::model
