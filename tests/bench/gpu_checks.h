// The checks of tests/bench/gpu_checks.cpp: each gives a JSON object for the report.
#pragma once

#include <cstdint>

#include "core/json.h"
#include "device/accelerator.h"

namespace lockstep::bench {

struct Check {
  Json figures;
  std::int64_t mismatches = 0;
};

// Every `stride`-th float through each elementary function, against the host. NaNs count as equal.
Check check_functions(Accelerator& accelerator, std::uint64_t stride);
// Norms, projections and attention weights of production kernels against model/kernels.h.
Check check_reductions(Accelerator& accelerator);
// Copies in every direction, and fills.
Check check_copies(Accelerator& accelerator);
// Restore of rows from staging, against one copy from pinned memory and one on the device.
Check measure_bandwidth(Accelerator& accelerator);
// A restored prefix and the forward behind it, with the forward behind the whole load (barrier) or
// each layer behind its own (per_layer).
Check measure_overlap(Accelerator& accelerator);

}  // namespace lockstep::bench
