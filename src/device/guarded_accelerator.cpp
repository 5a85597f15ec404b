#include "device/guarded_accelerator.h"

#include <sys/mman.h>

#include <cstring>

#include "core/check.h"

namespace lockstep {

namespace {

// Address space, not memory.
constexpr std::size_t kArenaBytes = std::size_t{1} << 36;
constexpr std::size_t kPage = 4096;

std::byte* reserve(int protection) {
  void* memory =
      mmap(nullptr, kArenaBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK("guarded.reserve", memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

}  // namespace

GuardedMemory::Access::Access(const GuardedMemory& memory) : memory_(memory) {
  CHECK("guarded.open",
        memory_.used_ == 0 || mprotect(memory_.arena_, memory_.used_, PROT_READ | PROT_WRITE) == 0);
}

GuardedMemory::Access::~Access() {
  if (memory_.used_ > 0) mprotect(memory_.arena_, memory_.used_, PROT_NONE);
}

GuardedMemory::GuardedMemory()
    : arena_(reserve(PROT_NONE)), mirror_(reserve(PROT_READ | PROT_WRITE)) {}

GuardedMemory::~GuardedMemory() {
  munmap(arena_, kArenaBytes);
  munmap(mirror_, kArenaBytes);
}

std::span<std::byte> GuardedMemory::allocate(std::size_t size) {
  CHECK("guarded.full", used_ + size <= kArenaBytes - kPage);
  const std::span<std::byte> bytes(arena_ + used_, size);
  used_ += (size + kPage - 1) / kPage * kPage;
  return bytes;
}

std::span<std::byte> GuardedMemory::take(std::size_t size) {
  std::vector<std::span<std::byte>>& known = free_[size];
  if (known.empty()) return allocate(size);
  const std::span<std::byte> bytes = known.back();
  known.pop_back();
  return bytes;
}

void GuardedMemory::give_back(std::span<std::byte> bytes) {
  free_[bytes.size()].push_back(bytes);
}

std::span<const std::byte> GuardedMemory::view(std::span<const std::byte> device) {
  const Access access(*this);
  std::byte* at = mirror_ + (device.data() - arena_);
  if (!device.empty()) std::memcpy(at, device.data(), device.size());
  return {at, device.size()};
}

std::span<std::byte> GuardedAccelerator::allocate(std::string_view /*name*/, Bytes size) {
  return memory_->allocate(size.index());
}

OwnedBytes GuardedAccelerator::scratch(Bytes size) {
  return {memory_->take(size.index()),
          [memory = memory_](std::span<std::byte> bytes) { memory->give_back(bytes); }};
}

void GuardedAccelerator::copy(StreamKind stream, const CopyList& copies, std::size_t piece,
                              std::size_t pieces) {
  const Access access(*memory_);
  HostAccelerator::copy(stream, copies, piece, pieces);
}

void GuardedAccelerator::upload(StreamKind stream, std::span<std::byte> target,
                                std::span<const std::byte> source) {
  const Access access(*memory_);
  HostAccelerator::upload(stream, target, source);
}

void GuardedAccelerator::fill(StreamKind stream, std::span<const std::span<std::byte>> targets,
                              std::uint32_t word) {
  const Access access(*memory_);
  HostAccelerator::fill(stream, targets, word);
}

void GuardedAccelerator::launch(StreamKind /*stream*/, const KernelCall& call) {
  const Access access(*memory_);
  for (std::int64_t unit = call.units; unit-- > 0;) call.emulate(call.kernel, unit);
}

std::span<const std::byte> GuardedAccelerator::host_view(std::span<const std::byte> device) {
  return memory_->view(device);
}

}  // namespace lockstep
