// The CUDA back end, seen from code that knows no CUDA header: there is one, or a reason why not.
#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "device/accelerator.h"

namespace lockstep {

// On the first device. An error says what is missing: a build with nvcc, a driver, a device, one
// that runs this build's code.
Result<std::unique_ptr<Accelerator>> make_cuda_accelerator();

// What a person wants to know about the first device: name, compute capability, memory, driver.
Result<std::string> describe_cuda_device();

}  // namespace lockstep
