// The entries of kernels on a CUDA device: one warp per unit, eight warps per block.
#pragma once

#include "device/kernel.h"

namespace lockstep {

inline constexpr int kWarpsPerBlock = 8;
inline constexpr int kThreadsPerBlock = kWarpsPerBlock * kWarpLanes;

template <class Kernel>
__global__ void __launch_bounds__(kThreadsPerBlock, 1)
    run_kernel(const __grid_constant__ Kernel kernel, const std::int64_t units) {
  // Whole warps leave together: what is left may use shuffles of all 32 lanes.
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock +
                            static_cast<std::int64_t>(threadIdx.x) / kWarpLanes;
  if (unit < units) kernel.run(Warp{}, unit);
}

}  // namespace lockstep

// In namespace lockstep, with a semicolon behind it.
#define LOCKSTEP_CUDA_ENTRY(Kernel)                            \
  template <>                                                  \
  const void* cuda_entry<Kernel>() {                           \
    return reinterpret_cast<const void*>(&run_kernel<Kernel>); \
  }                                                            \
  static_assert(true)
