// Bytes with one owner, in whatever memory they lie: given back when the owner goes. Move-only.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

namespace lockstep {

class OwnedBytes {
 public:
  using Release = std::function<void(std::span<std::byte>)>;

  OwnedBytes() = default;
  OwnedBytes(std::span<std::byte> bytes, Release release)
      : bytes_(bytes), release_(std::move(release)) {}
  OwnedBytes(OwnedBytes&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), release_(std::exchange(other.release_, nullptr)) {}
  OwnedBytes& operator=(OwnedBytes&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~OwnedBytes() {
    if (release_) release_(bytes_);
  }

  std::span<std::byte> get() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::span<std::byte> bytes_;
  Release release_;
};

}  // namespace lockstep
