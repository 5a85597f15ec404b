// The streams that a device has.
#pragma once

#include <cstddef>

namespace lockstep {

// A stream of one device. Only the device makes them.
enum class StreamKind { compute, load, offload };
inline constexpr std::size_t kStreamCount = 3;
constexpr std::size_t index(StreamKind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace lockstep
