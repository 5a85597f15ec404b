// Digests. SHA-256 names content (page hashes, namespaces); XXH3 guards rows and folds a run's
// digest.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lockstep {

// 32 bytes that name a whole prefix up to the end of one page, in one namespace (semantics 1).
struct PageHash {
  std::array<std::byte, 32> bytes{};
  auto operator<=>(const PageHash&) const = default;
  bool operator==(const PageHash&) const = default;
  std::string hex() const;
};

// One SHA-256 computation at a time (OpenSSL EVP); the context is reused between computations.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& update(std::span<const std::byte> data);
  // Ends the computation and makes the object ready for the next one.
  PageHash finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// XXH3, 64 bits.
std::uint64_t xxh3(std::span<const std::byte> data, std::uint64_t seed = 0);

// Folds 64-bit words, strings and byte ranges into one value, in order.
class RunDigest {
 public:
  void fold(std::uint64_t word);
  void fold(std::span<const std::byte> data);
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x9e3779b97f4a7c15ull;
};

}  // namespace lockstep

template <>
struct std::hash<lockstep::PageHash> {
  std::size_t operator()(const lockstep::PageHash& name) const {
    std::size_t word = 0;
    for (std::size_t i = 0; i < sizeof word; ++i)
      word = word << 8 | static_cast<std::size_t>(name.bytes[i]);
    return word;
  }
};
