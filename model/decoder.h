// The numeric hybrid decoder in the shape of Inkling: full and sliding-window attention with a
// learned relative bias and per-head norms of queries and keys; short convolutions on keys, values,
// attention output and MLP output; a gated MLP. fp32, one canonical order of operations
// (model/kernels.h), so that the bits depend on the tokens alone.
//
//   x = norm(embedding[token]) + adapter                       adapter: seeded by the extra key
//   per layer:  n = norm(x); q, k, v, r = n Wq, n Wk, n Wv, n Wr
//               k = norm(conv(k)) per head; v = conv(v); q = norm(q) per head
//               score(t, s) = q.k / head_dim + sum_d r_d profile_d[t - s]      0 beyond the extent
//               x += conv(softmax(score) v Wo)
//               x += conv((silu(n Wg) * (n Wu)) Wd), n = norm(x)
//   logits = norm(x) / divisor * Wh
//   conv(y)_t = y_t + sum_j w_j y_(t-taps+1+j): a slot holds the last taps - 1 inputs y
//
// Other families leave some of this out and have other parts (DecoderShape): recurrent mixers
// (model/recurrent.h) in place of attention or beside it, rotary positions, an output gate, keys
// and values from a latent vector, a mixture of experts.
//
// Bytes: a page holds, for each layer, K[token][kv head][dim], then V. A slot holds, for each
// layer, the inputs of the convolutions on K, V, attention and MLP, oldest first; no temporal part.
// A slot of zero tokens is all zeros. A shard has its own heads of K and V, in pages and in slots;
// the inputs on attention and MLP are whole on every rank. Of a recurrent mixer it has its heads of
// the state and their channels of the inputs, or all (model/shard.h).
#pragma once

#include <vector>

#include "model/attention.h"
#include "model/decoder_layer.h"
#include "model/model.h"
#include "model/numbers.h"

namespace lockstep::model {

class Decoder : public Model {
 public:
  // With weights of the whole model; `weights_name` is part of the fingerprint. REQUIRES:
  // shard.count divides the KV heads of every layer.
  Decoder(const ModelConfig& config, Weights weights, const std::string& weights_name,
          Shard shard = {});

  bool splits_into(std::size_t ranks) const override;
  const Numbers* numbers() const override { return &numbers_; }
  Bytes activation_bytes() const override;
  Bytes output_bytes() const override;
  void embed(const Segment& segment, std::span<std::byte> activations) const override;
  void run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                 std::span<std::byte> activations) const override;
  Bytes partial_bytes() const override { return activation_bytes(); }
  void run_heads(LayerId layer, const Segment& segment, const Memory& memory,
                 std::span<const std::byte> activations,
                 std::span<std::byte> partial) const override;
  void combine_heads(LayerId layer, const Segment& segment, const Memory& memory,
                     std::span<const std::span<const std::byte>> partials,
                     std::span<std::byte> activations) const override;
  void head(const Segment& segment, std::span<const std::byte> activations,
            std::span<std::byte> outputs) const override;
  TokenId next_token(std::span<const std::byte> output) const override;
  void clear_slot(std::span<std::byte> slot) const override;
  bool has_logits() const override { return true; }

 protected:
  // The shape of a layer with the shard's own heads, and whether its recurrent mixer's are shared.
  const DecoderShape& own_shape(LayerId layer) const { return shapes_[layer.index()]; }
  bool shares_recurrent_of(LayerId layer) const { return shares_[layer.index()]; }

 private:
  const DecoderShape& shape() const { return numbers_.config.shape; }
  LayerPlan plan(LayerId layer) const;
  void declare_layer(LayerId layer, const DecoderShape& whole, Shard shard);
  void declare_pages(LayerId layer, const DecoderShape& whole, Shard shard);
  void declare_recurrent(LayerId layer, const DecoderShape& whole, Shard shard);
  void declare_convolutions(LayerId layer, const DecoderShape& whole, Shard shard);

  Numbers numbers_;                   // a shard's own
  std::vector<DecoderShape> shapes_;  // per layer, a shard's own
  std::vector<bool> shares_;          // per layer: shares_recurrent()
  std::vector<BiasTable> bias_;       // per layer
  std::optional<Rope> rope_;
};

}  // namespace lockstep::model
