// Random numbers: splitmix64, and named substreams of a seed (simulation.md, Determinism).
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// The splitmix64 generator (Steele, Lea and Flood 2014): next() is its i-th output.
class SplitMix64 {
 public:
  constexpr explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Uniform enough for scheduling and workloads: next() mod bound. REQUIRES: bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

// A substream of `seed`: a choice added in one substream does not move the others.
constexpr SplitMix64 substream(std::uint64_t seed, std::string_view stream) {
  std::uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a of the name
  for (char c : stream) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  SplitMix64 mix(seed ^ hash);
  return SplitMix64(mix.next());
}

}  // namespace lockstep
