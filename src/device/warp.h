// A warp of 32 lanes as kernels are written for it: one text, two machines. On a GPU each lane is a
// thread and values live in registers; on the host a lane is an index and each step loops over all
// lanes. Reductions have one order on both: a tree of 16, 8, 4, 2, 1.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace lockstep {

inline constexpr int kWarpLanes = 32;

// One value per lane.
#if defined(__CUDA_ARCH__)
template <class T>
struct Lanes {
  T value;
  __device__ __forceinline__ T& operator[](int) { return value; }
  __device__ __forceinline__ const T& operator[](int) const { return value; }
};
#else
template <class T>
struct Lanes {
  T values[kWarpLanes];
  LOCKSTEP_HD T& operator[](int lane) { return values[lane]; }
  LOCKSTEP_HD const T& operator[](int lane) const { return values[lane]; }
};
#endif

class Warp {
 public:
  // Runs `step(lane)` in every lane. Lanes see each other only through the functions below and
  // through memory between two launches.
  template <class Step>
  LOCKSTEP_HD void each(const Step& step) const {
#if defined(__CUDA_ARCH__)
    step(static_cast<int>(threadIdx.x) % kWarpLanes);
#else
    for (int lane = 0; lane < kWarpLanes; ++lane) step(lane);
#endif
  }

  // The value of the lane `distance` higher; a lane's own where there is none.
  template <class T>
  LOCKSTEP_HD Lanes<T> down(const Lanes<T>& from, int distance) const {
    Lanes<T> result;
#if defined(__CUDA_ARCH__)
    result.value = __shfl_down_sync(0xffffffffu, from.value, static_cast<unsigned>(distance));
#else
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      result[lane] = from[lane + distance < kWarpLanes ? lane + distance : lane];
    }
#endif
    return result;
  }

  // Of each four neighbouring lanes (l0 + l2) + (l1 + l3), in all four.
  LOCKSTEP_HD Lanes<float> quad_sum(const Lanes<float>& from) const {
    Lanes<float> result;
#if defined(__CUDA_ARCH__)
    const float half = from.value + __shfl_xor_sync(0xffffffffu, from.value, 2);
    result.value = half + __shfl_xor_sync(0xffffffffu, half, 1);
#else
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const int quad = lane / 4 * 4;
      result[lane] = (from[quad] + from[quad + 2]) + (from[quad + 1] + from[quad + 3]);
    }
#endif
    return result;
  }

  // What lane 0 has, for every lane.
  template <class T>
  LOCKSTEP_HD T first(const Lanes<T>& from) const {
#if defined(__CUDA_ARCH__)
    return __shfl_sync(0xffffffffu, from.value, 0);
#else
    return from[0];
#endif
  }

  // Combines the first kCount lanes, a power of two, by halves: lane i takes in lane i + half.
  template <int kCount, class T, class Combine>
  LOCKSTEP_HD T tree(Lanes<T> lanes, const Combine& combine) const {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int half = kCount / 2; half > 0; half /= 2) {
      const Lanes<T> other = down(lanes, half);
      each([&](int lane) { lanes[lane] = combine(lanes[lane], other[lane]); });
    }
    return first(lanes);
  }

  template <int kCount>
  LOCKSTEP_HD float tree_sum(const Lanes<float>& lanes) const {
    return tree<kCount>(lanes, [](float a, float b) { return a + b; });
  }
};

}  // namespace lockstep
