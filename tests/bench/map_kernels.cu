// The elementary functions, compiled for the device.
#include "device/cuda/launch.cuh"
#include "map_kernels.h"

namespace lockstep {

LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::Exp>);
LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::ExpNeg>);
LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::Log>);
LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::Log1pUnit>);
LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::Sigmoid>);
LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::Silu>);
LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::Softplus>);
LOCKSTEP_CUDA_ENTRY(bench::MapKernel<bench::Rsqrt>);

}  // namespace lockstep
