#include "model/convolution.h"

#include <algorithm>

#include "model/kernels.h"

namespace lockstep::model {

Convolution::Convolution(std::int64_t channels, std::int64_t taps, std::int64_t tile,
                         const std::vector<float>& weights)
    : channels_(channels),
      history_(weights.empty() ? 0 : taps - 1),
      weights_(weights),
      inputs_(static_cast<std::size_t>((history_ + tile) * channels)) {}

void Convolution::load(const float* state) {
  std::copy(state, state + state_size(), inputs_.data());
}

void Convolution::save(std::int64_t tokens, float* state) const {
  const float* rows = inputs_.data() + tokens * channels_;
  std::copy(rows, rows + state_size(), state);
}

void Convolution::run(std::int64_t count, float* y) const {
  if (weights_.empty()) {
    std::copy(inputs_.data(), inputs_.data() + count * channels_, y);
    return;
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const float* inputs = inputs_.data() + row * channels_;
    float* outputs = y + row * channels_;
    std::int64_t c = 0;
    for (; c + 8 <= channels_; c += 8) {
      kernels::convolve<Pack8>(inputs + c, weights_.data() + c, history_ + 1, channels_,
                               outputs + c);
    }
    for (; c < channels_; ++c) {
      kernels::convolve<float>(inputs + c, weights_.data() + c, history_ + 1, channels_,
                               outputs + c);
    }
  }
}

void Convolution::run_plain(std::int64_t count, const std::vector<float>& bias, float* y) const {
  for (std::int64_t row = 0; row < count; ++row) {
    const float* inputs = inputs_.data() + row * channels_;
    float* outputs = y + row * channels_;
    const auto bias_at = [&](std::int64_t c) { return bias.empty() ? nullptr : bias.data() + c; };
    std::int64_t c = 0;
    for (; c + 8 <= channels_; c += 8) {
      kernels::convolve_plain<Pack8>(inputs + c, weights_.data() + c, bias_at(c), history_ + 1,
                                     channels_, outputs + c);
    }
    for (; c < channels_; ++c) {
      kernels::convolve_plain<float>(inputs + c, weights_.data() + c, bias_at(c), history_ + 1,
                                     channels_, outputs + c);
    }
  }
}

}  // namespace lockstep::model
