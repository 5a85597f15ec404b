// Elementary functions in fp32 that give the same bits on every compiler, optimisation level and
// device: only correctly rounded operations (+ - * / fma sqrt, integers, compare and select), in a
// fixed order, no library function. Build with -ffp-contract=off, or nvcc --fmad=false.
//
// Errors are the largest over all floats of the range, in units in the last place, against fp64
// (measured by the test "detmath: errors over every float"). Results are rounded to nearest and
// subnormals are kept, unless a function says otherwise.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/host_device.h"

namespace lockstep::detmath {

#if defined(__CUDA_ARCH__)
LOCKSTEP_HD float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
LOCKSTEP_HD float sqrt(float a) {
  return __fsqrt_rn(a);
}
#else
LOCKSTEP_HD float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
LOCKSTEP_HD float sqrt(float a) {
  return __builtin_sqrtf(a);
}
#endif

LOCKSTEP_HD std::uint32_t bits(float value) {
  std::uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}
LOCKSTEP_HD float from_bits(std::uint32_t word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
LOCKSTEP_HD float magnitude(float value) {
  return from_bits(bits(value) & 0x7fffffffu);
}

namespace detail {

// x = n ln 2 + r with |r| <= ln 2 / 2; n is exact.
struct Reduced {
  float r;
  std::int32_t n;
};

LOCKSTEP_HD Reduced reduce(float x) {
  constexpr float kRoundToInteger = 12582912.0f;  // 1.5 * 2^23
  const float shifted = fma(x, 0x1.715476p+0f, kRoundToInteger);
  const float n = shifted - kRoundToInteger;
  float r = fma(n, -0x1.62e4p-1f, x);  // ln 2 in two parts; the first has 16 bits
  r = fma(n, -0x1.7f7d1cp-20f, r);
  return {r, static_cast<std::int32_t>(bits(shifted) - bits(kRoundToInteger))};
}

// e^r - 1 for |r| <= ln 2 / 2: a minimax polynomial of degree 6.
LOCKSTEP_HD float expm1_core(float r) {
  float q = 0x1.6a2256p-10f;
  q = fma(q, r, 0x1.123b02p-7f);
  q = fma(q, r, 0x1.5558f8p-5f);
  q = fma(q, r, 0x1.55549p-3f);
  q = fma(q, r, 0x1.fffffcp-2f);
  return fma(r * r, q, r);
}

// 2^n for -126 <= n <= 127.
LOCKSTEP_HD float power_of_two(std::int32_t n) {
  return from_bits(static_cast<std::uint32_t>(n + 127) << 23);
}

// log(1 + f) for -1/3 <= f <= 1/3.
LOCKSTEP_HD float log1p_core(float f) {
  float p = 0x1.ec195ep-4f;
  p = fma(p, f, -0x1.07347p-3f);
  p = fma(p, f, 0x1.b86d6cp-4f);
  p = fma(p, f, -0x1.f37baep-4f);
  p = fma(p, f, 0x1.24f532p-3f);
  p = fma(p, f, -0x1.559978p-3f);
  p = fma(p, f, 0x1.99977ap-3f);
  p = fma(p, f, -0x1.ffff0cp-3f);
  p = fma(p, f, 0x1.555556p-2f);
  const float u = fma(p, f, -0.5f);
  return fma(f * f, u, f);
}

constexpr float kLn2 = 0x1.62e43p-1f;

}  // namespace detail

// e^x, 1.02 ulp. Overflows to infinity, underflows through the subnormals to 0; a NaN stays one.
LOCKSTEP_HD float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const detail::Reduced reduced = detail::reduce(x);
  const float p = detail::expm1_core(reduced.r);
  // Two factors, because 2^n alone may be out of range: the first is exact, the second rounds once.
  const std::int32_t half = reduced.n >> 1;
  const float first = detail::power_of_two(half);
  return fma(p, first, first) * detail::power_of_two(reduced.n - half);
}

// e^x for x <= 0, 1.01 ulp; 0 below -87. The one for softmax and decays.
LOCKSTEP_HD float exp_neg(float x) {
  const bool vanishes = x < -87.0f;
  const detail::Reduced reduced = detail::reduce(vanishes ? -87.0f : x);
  const float scale = detail::power_of_two(reduced.n);
  const float value = fma(detail::expm1_core(reduced.r), scale, scale);
  return vanishes ? 0.0f : value;
}

// Natural logarithm, 0.92 ulp, subnormals included; log(0) = -infinity, log(x < 0) = NaN.
LOCKSTEP_HD float log(float x) {
  constexpr std::uint32_t kTwoThirds = 0x3f2aaaabu;
  const bool subnormal = x < 0x1p-126f;
  const std::uint32_t distance = bits(subnormal ? x * 0x1p23f : x) - kTwoThirds;
  const std::int32_t exponent = static_cast<std::int32_t>(distance) >> 23;
  const float m = from_bits((distance & 0x007fffffu) + kTwoThirds);  // in [2/3, 4/3)
  const float e = static_cast<float>(exponent) + (subnormal ? -23.0f : 0.0f);
  float result = fma(e, detail::kLn2, detail::log1p_core(m - 1.0f));
  result = x == 0.0f ? from_bits(0xff800000u) : result;
  result = x > 0x1.fffffep+127f ? x : result;
  result = x < 0.0f ? from_bits(0x7fc00000u) : result;
  return x != x ? x : result;
}

// log(1 + x) for 0 <= x <= 1, 1.53 ulp.
LOCKSTEP_HD float log1p_unit(float x) {
  const bool large = x > 0x1.555556p-2f;
  const float l = detail::log1p_core(large ? (x - 1.0f) * 0.5f : x);
  return large ? l + detail::kLn2 : l;
}

// 1 / (1 + e^-x), 2.41 ulp.
LOCKSTEP_HD float sigmoid(float x) {
  const float e = exp_neg(-magnitude(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// x * sigmoid(x), 3.40 ulp. NaN for -infinity.
LOCKSTEP_HD float silu(float x) {
  const float e = exp_neg(-magnitude(x));
  return (x < 0.0f ? x * e : x) / (1.0f + e);
}

// log(1 + e^x), 1.84 ulp.
LOCKSTEP_HD float softplus(float x) {
  const float e = exp_neg(-magnitude(x));
  return (x > 0.0f ? x : 0.0f) + log1p_unit(e);
}

// 1 / sqrt(x), 1.50 ulp.
LOCKSTEP_HD float rsqrt(float x) {
  return 1.0f / sqrt(x);
}

}  // namespace lockstep::detmath
