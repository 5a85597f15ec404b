// A depthwise causal convolution over the tokens of one sequence, tile by tile: its inputs, with
// those of the tokens before.
//
//   inputs  | taps - 1 rows from the slot, oldest first | this tile's rows |
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::model {

class Convolution {
 public:
  // `weights` outlives this. Without weights it passes its inputs on and has no state.
  Convolution(std::int64_t channels, std::int64_t taps, std::int64_t tile,
              const std::vector<float>& weights);

  std::int64_t state_size() const { return history_ * channels_; }
  // Where the rows of the tile go, before run().
  float* tile() { return inputs_.data() + state_size(); }

  void load(const float* state);
  // The state after `tokens` tokens of the tile.
  void save(std::int64_t tokens, float* state) const;
  // y[row] = input + convolution, for the first `count` rows of the tile.
  void run(std::int64_t count, float* y) const;
  // y[row] = bias + convolution; `bias` may be empty.
  void run_plain(std::int64_t count, const std::vector<float>& bias, float* y) const;

 private:
  std::int64_t channels_;
  std::int64_t history_;
  const std::vector<float>& weights_;
  std::vector<float> inputs_;
};

}  // namespace lockstep::model
