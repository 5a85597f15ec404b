// The recurrent mixers on the tokens of one sequence, on the host. n is the normed input, conv the
// convolution over the last taps - 1 tokens and this one, per channel:
//
//   mamba2     z, xBC, dt = n W;  x, B, C = silu(conv(xBC) + bias);  dt = softplus(dt + dt_bias)
//              S = e^(-e^a_log dt) S + dt x (outer) B;  y = S C + skip x       per head
//              out(norm per group(y * silu(z))), or without the norm
//   gdn        q, k, v, z, b, a = n W;  q, k, v = silu(conv(q, k, v));  q, k to unit length
//              decay = e^(-e^a_log softplus(a + dt_bias)), beta = sigmoid(b)   per value head
//              S = decay S;  S += beta (v - S k) (outer) k;  y = S q / sqrt(key_dim)
//              out(norm per head(y) * silu(z))
//   kda        the same with a decay per element of a key, e^(-e^a_log softplus(f + dt_bias)),
//              f = (n Wf) decay, and sigmoid(g) instead of silu(z), g = (n Wg) gate
//   shortconv  B, C, x = n W;  out(C * conv(B * x))
//
// In the layer's part of a slot the state comes first ([head][value row][key element], Mamba2:
// [head][channel][state element]), then the inputs of the convolution, oldest first.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/convolution.h"
#include "model/weights.h"

namespace lockstep::model {

class RecurrentMixer {
 public:
  // All outlive this. `tile`: the most tokens at a time.
  RecurrentMixer(Mixer mixer, const DecoderShape& shape, const RecurrentWeights& weights,
                 std::int64_t taps, std::int64_t tile);

  // Of floats.
  std::int64_t state_size() const { return sizes_.temporal + conv_.state_size(); }
  void load(const float* state);
  // The state after the `count` tokens of the last run().
  void save(std::int64_t count, float* state) const;
  // The next `count` tokens: normed inputs [count][hidden] to updates [count][hidden].
  void run(const float* normed, std::int64_t count, float* y);

 private:
  // One token: `row` are the projected inputs, with the convolution's outputs in their place.
  void step(const float* row, float* y);
  void mamba2(const float* row, float* y);
  void delta_rule(const float* row, float* y);
  // The decay of value head `head`, one per key element.
  void decays(const float* row, std::int64_t head, float* decay);
  void gate_delta(const float* row, float* y);

  Mixer mixer_;
  const DecoderShape& shape_;
  const RecurrentWeights& weights_;
  RecurrentSizes sizes_;
  Convolution conv_;
  std::vector<float> state_;
  std::vector<float> projected_;  // [tile][projected]
  std::vector<float> convolved_;  // [tile][conv_channels]
  std::vector<float> mixed_;      // [tile][output]
  std::vector<float> scratch_;
};

// Floats of a recurrent layer's part of a slot: the state, and the inputs of the convolution.
struct RecurrentState {
  std::int64_t temporal = 0;
  std::int64_t conv = 0;
};
RecurrentState recurrent_state(const DecoderShape& shape, Mixer mixer, std::int64_t taps);

}  // namespace lockstep::model
