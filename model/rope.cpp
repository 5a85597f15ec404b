#include "model/rope.h"

#include <cmath>

#include "core/check.h"
#include "model/kernels.h"

namespace lockstep::model {
namespace {

// Sums coefficients[i] * x^i, highest power first.
template <std::size_t kCount>
double polynomial(const double (&coefficients)[kCount], double x) {
  double sum = coefficients[kCount - 1];
  for (std::size_t i = kCount - 1; i-- > 0;) sum = __builtin_fma(sum, x, coefficients[i]);
  return sum;
}

// sin r / r and cos r as series in r^2; the first term left out is below 2^-60 for |r| <= pi/4.
constexpr double kSine[] = {1.0,
                            -1.0 / 6,
                            1.0 / 120,
                            -1.0 / 5040,
                            1.0 / 362880,
                            -1.0 / 39916800,
                            1.0 / 6227020800,
                            -1.0 / 1307674368000,
                            1.0 / 355687428096000};
constexpr double kCosine[] = {1.0,
                              -1.0 / 2,
                              1.0 / 24,
                              -1.0 / 720,
                              1.0 / 40320,
                              -1.0 / 3628800,
                              1.0 / 479001600,
                              -1.0 / 87178291200,
                              1.0 / 20922789888000,
                              -1.0 / 6402373705728000};

}  // namespace

SineCosine sine_cosine(double x) {
  // pi / 2 as a sum of three doubles of 33, 33 and 53 bits: multiples below 2^20 of the first two
  // are exact, and the fused steps keep the rest.
  constexpr double kHigh = 0x1.921fb544p+0;
  constexpr double kMiddle = 0x1.0b4611a6p-34;
  constexpr double kLow = 0x1.3198a2e037073p-69;
  constexpr double kPerQuarter = 0x1.45f306dc9c883p-1;  // 2 / pi
  const double quarters = __builtin_rint(x * kPerQuarter);
  double r = __builtin_fma(quarters, -kHigh, x);
  r = __builtin_fma(quarters, -kMiddle, r);
  r = __builtin_fma(quarters, -kLow, r);
  const double square = r * r;
  const double sine = r * polynomial(kSine, square);
  const double cosine = polynomial(kCosine, square);
  switch (static_cast<std::int64_t>(quarters) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

Rope::Rope(std::int64_t rotary_dim, float theta) {
  CHECK("rope.dim", rotary_dim >= 2 && (rotary_dim & (rotary_dim - 1)) == 0 && theta > 0);
  double factor = 1.0 / static_cast<double>(theta);  // theta^(-2 / rotary_dim) in the end
  for (std::int64_t half = rotary_dim / 2; half > 1; half /= 2) factor = std::sqrt(factor);
  double step = 1.0;
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i, step *= factor) steps_.push_back(step);
}

void Rope::turns(std::int64_t position, float* cosines, float* sines) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const SineCosine turn = sine_cosine(static_cast<double>(position) * steps_[i]);
    cosines[i] = static_cast<float>(turn.cosine);
    sines[i] = static_cast<float>(turn.sine);
  }
}

void Rope::rotate(std::int64_t position, std::int64_t heads, std::int64_t head_dim,
                  float* rows) const {
  const auto half = static_cast<std::int64_t>(steps_.size());
  std::vector<float> cosines(steps_.size());
  std::vector<float> sines(steps_.size());
  turns(position, cosines.data(), sines.data());
  for (std::int64_t head = 0; head < heads; ++head) {
    kernels::rotate(cosines.data(), sines.data(), half, rows + head * head_dim);
  }
}

}  // namespace lockstep::model
