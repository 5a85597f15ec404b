#if !defined(LOCKSTEP_WITH_CUDA)

#include "device/cuda_accelerator.h"

namespace lockstep {

namespace {

Error not_built() {
  return {"this build has no CUDA code: CMake found no nvcc, or LOCKSTEP_CUDA is OFF"};
}

}  // namespace

Result<std::unique_ptr<Accelerator>> make_cuda_accelerator() {
  return not_built();
}

Result<std::string> describe_cuda_device() {
  return not_built();
}

}  // namespace lockstep

#endif
