#include "device/host_accelerator.h"

#include <cstring>

#include "core/check.h"

namespace lockstep {

namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::span<std::byte> HostAccelerator::allocate(std::string_view /*name*/, Bytes size) {
  CHECK("device.allocate", size >= Bytes{0});
  std::vector<std::byte>& buffer = buffers_.emplace_back(size.index() + kAlignment);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(buffer.data()) % kAlignment;
  return std::span(buffer).subspan((kAlignment - misaligned) % kAlignment, size.index());
}

OwnedBytes HostAccelerator::staging(Bytes size) {
  auto* bytes = new std::byte[size.index()]();
  return {{bytes, size.index()}, [](std::span<std::byte> owned) { delete[] owned.data(); }};
}

void HostAccelerator::copy(StreamKind /*stream*/, const CopyList& copies, std::size_t piece,
                           std::size_t pieces) {
  copies.copy(piece, pieces);
}

void HostAccelerator::upload(StreamKind /*stream*/, std::span<std::byte> target,
                             std::span<const std::byte> source) {
  CHECK("device.upload", target.size() == source.size());
  if (!source.empty()) std::memcpy(target.data(), source.data(), source.size());
}

void HostAccelerator::fill(StreamKind /*stream*/, std::span<const std::span<std::byte>> targets,
                           std::uint32_t word) {
  for (const std::span<std::byte> bytes : targets) {
    std::size_t at = 0;
    for (; at + sizeof word <= bytes.size(); at += sizeof word) {
      std::memcpy(&bytes[at], &word, sizeof word);
    }
    if (at < bytes.size()) std::memcpy(&bytes[at], &word, bytes.size() - at);
  }
}

void HostAccelerator::launch(StreamKind /*stream*/, const KernelCall& call) {
  for (std::int64_t unit = 0; unit < call.units; ++unit) call.emulate(call.kernel, unit);
}

std::shared_ptr<StreamMark> HostAccelerator::record(StreamKind /*stream*/) {
  return std::make_shared<StreamMark>();
}

}  // namespace lockstep
