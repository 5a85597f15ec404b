// How long an operation takes on the virtual clock: a latency, plus its bytes over the link's
// bandwidth.
#pragma once

#include <cmath>

#include "core/check.h"
#include "core/ids.h"
#include "device/device.h"

namespace lockstep {

struct LinkCost {
  Nanoseconds latency;
  double bytes_per_ns = 1;  // equals gigabytes (1e9 bytes) per second; > 0

  // Of the bytes alone, rounded up to whole nanoseconds.
  Nanoseconds transfer(Bytes bytes) const {
    CHECK("cost.bandwidth", bytes_per_ns > 0);
    const double duration = std::ceil(static_cast<double>(bytes.value()) / bytes_per_ns);
    return Nanoseconds{static_cast<std::int64_t>(duration)};
  }
  Nanoseconds total(Bytes bytes) const { return latency + transfer(bytes); }
};

// The defaults are those of a large accelerator on PCIe 5, rounded.
struct CostModel {
  LinkCost device_memory{Nanoseconds{2000}, 2000.0};
  LinkCost host_link{Nanoseconds{5000}, 50.0};

  // Link::none costs nothing.
  Nanoseconds of(Link link, Bytes bytes) const {
    if (link == Link::none) return Nanoseconds{0};
    return link == Link::host_link ? host_link.total(bytes) : device_memory.total(bytes);
  }
};

}  // namespace lockstep
