// Several neighbouring fp32 values that take the same operations. Element by element these are the
// operations on single floats, so a kernel written for any lane type gives the same bits with all.
#pragma once

#include <cstdint>
#include <cstring>

#include "model/detmath.h"

#if defined(__FMA__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace lockstep::model {

#if !defined(__CUDACC__)
using Pack4 = float __attribute__((vector_size(16)));
using Pack8 = float __attribute__((vector_size(32)));
#endif

template <class Lanes>
inline constexpr std::int64_t kLanesOf = sizeof(Lanes) / sizeof(float);

template <class Lanes>
LOCKSTEP_HD Lanes load(const float* source) {
  Lanes lanes;
  std::memcpy(&lanes, source, sizeof lanes);
  return lanes;
}

template <class Lanes>
LOCKSTEP_HD void store(float* target, const Lanes& lanes) {
  std::memcpy(target, &lanes, sizeof lanes);
}

// a * b + c in every lane, rounded once; the scalar `a` is the same for all.
LOCKSTEP_HD float fma_lanes(float a, float b, float c) {
  return detmath::fma(a, b, c);
}

#if defined(__FMA__) && !defined(__CUDACC__)
LOCKSTEP_HD Pack4 fma_lanes(float a, Pack4 b, Pack4 c) {
  return _mm_fmadd_ps(_mm_set1_ps(a), b, c);
}
LOCKSTEP_HD Pack8 fma_lanes(float a, Pack8 b, Pack8 c) {
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
}
LOCKSTEP_HD Pack8 fma_lanes(Pack8 a, Pack8 b, Pack8 c) {
  return _mm256_fmadd_ps(a, b, c);
}
#elif !defined(__CUDACC__)
template <class Lanes>
LOCKSTEP_HD Lanes fma_lanes(float a, Lanes b, Lanes c) {
  for (std::int64_t i = 0; i < kLanesOf<Lanes>; ++i) c[i] = detmath::fma(a, b[i], c[i]);
  return c;
}
LOCKSTEP_HD Pack8 fma_lanes(Pack8 a, Pack8 b, Pack8 c) {
  for (std::int64_t i = 0; i < kLanesOf<Pack8>; ++i) c[i] = detmath::fma(a[i], b[i], c[i]);
  return c;
}
#endif

}  // namespace lockstep::model
