// One macro: a function that the CPU build inlines and the CUDA build compiles for both sides.
#pragma once

#if defined(__FAST_MATH__)
#error "build without fast-math: the arithmetic must give the same bits everywhere"
#endif

#if defined(__CUDACC__)
#define LOCKSTEP_HD __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HD inline __attribute__((always_inline))
#endif
