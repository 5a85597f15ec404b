// How a kernel is written and launched. A kernel is a plain struct of parameters with
//
//   static constexpr std::string_view kName
//   LOCKSTEP_HD void run(const Warp& warp, std::int64_t unit) const
//
// Units are independent: no order between them, no two write the same bytes. The host runs them one
// after the other, the guarded accelerator from the last to the first; a .cu file gives each kernel
// type its entry on the device, one warp per unit.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/accelerator.h"
#include "device/warp.h"

namespace lockstep {

// The entry of a kernel on a CUDA device, null if this build has none. A .cu file in the folder
// cuda/ beside the kernel's header specialises it.
#if defined(LOCKSTEP_WITH_CUDA)
template <class Kernel>
const void* cuda_entry();
#else
template <class Kernel>
const void* cuda_entry() {
  return nullptr;
}
#endif

template <class Kernel>
void emulate_kernel(const void* kernel, std::int64_t unit) {
  static_cast<const Kernel*>(kernel)->run(Warp{}, unit);
}

template <class Kernel>
void launch(Accelerator& accelerator, StreamKind stream, const Kernel& kernel, std::int64_t units) {
  static_assert(std::is_trivially_copyable_v<Kernel>);
  if (units == 0) return;
  accelerator.launch(stream, {Kernel::kName, cuda_entry<Kernel>(), &kernel, sizeof kernel,
                              &emulate_kernel<Kernel>, units});
}

}  // namespace lockstep
