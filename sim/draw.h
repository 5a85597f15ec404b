// Drawing from a random stream: small choices with readable names.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/random.h"

namespace lockstep::sim {

class Draw {
 public:
  explicit Draw(SplitMix64 stream) : stream_(stream) {}

  std::uint64_t number() { return stream_.next() >> 11; }  // fits a scenario's 53 bits
  // From `low` to `high`, both included. REQUIRES: low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(stream_.below(static_cast<std::uint64_t>(high - low) + 1));
  }
  // Small numbers often: uniform below 2, 4, 8 .. 2^bits, each with the same probability.
  std::int64_t logarithmic(std::int64_t bits) {
    return between(0, (std::int64_t{1} << between(1, bits)) - 1);
  }
  bool one_in(std::int64_t chances) { return between(1, chances) == 1; }
  template <class T, std::size_t N>
  const T& of(const std::array<T, N>& all) {
    return all[stream_.below(N)];
  }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[stream_.below(all.size())];
  }

 private:
  SplitMix64 stream_;
};

}  // namespace lockstep::sim
