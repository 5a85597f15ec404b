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

class GuardedAccelerator::Access {
 public:
  explicit Access(const GuardedAccelerator& owner) : owner_(owner) {
    CHECK("guarded.open",
          owner_.used_ == 0 || mprotect(owner_.arena_, owner_.used_, PROT_READ | PROT_WRITE) == 0);
  }
  ~Access() {
    if (owner_.used_ > 0) mprotect(owner_.arena_, owner_.used_, PROT_NONE);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

 private:
  const GuardedAccelerator& owner_;
};

GuardedAccelerator::GuardedAccelerator()
    : arena_(reserve(PROT_NONE)), mirror_(reserve(PROT_READ | PROT_WRITE)) {}

GuardedAccelerator::~GuardedAccelerator() {
  munmap(arena_, kArenaBytes);
  munmap(mirror_, kArenaBytes);
}

std::span<std::byte> GuardedAccelerator::allocate(std::string_view /*name*/, Bytes size) {
  CHECK("device.allocate", size >= Bytes{0} && used_ + size.index() <= kArenaBytes - kPage);
  const std::span<std::byte> bytes(arena_ + used_, size.index());
  used_ += (size.index() + kPage - 1) / kPage * kPage;
  return bytes;
}

OwnedBytes GuardedAccelerator::scratch(Bytes size) {
  std::vector<std::span<std::byte>>& known = free_[size.index()];
  std::span<std::byte> bytes;
  if (known.empty()) {
    bytes = allocate("scratch", size);
  } else {
    bytes = known.back();
    known.pop_back();
  }
  return {bytes, [this](std::span<std::byte> owned) { free_[owned.size()].push_back(owned); }};
}

void GuardedAccelerator::copy(StreamKind stream, const CopyList& copies, std::size_t piece,
                              std::size_t pieces) {
  const Access access(*this);
  HostAccelerator::copy(stream, copies, piece, pieces);
}

void GuardedAccelerator::upload(StreamKind stream, std::span<std::byte> target,
                                std::span<const std::byte> source) {
  const Access access(*this);
  HostAccelerator::upload(stream, target, source);
}

void GuardedAccelerator::fill(StreamKind stream, std::span<const std::span<std::byte>> targets,
                              std::uint32_t word) {
  const Access access(*this);
  HostAccelerator::fill(stream, targets, word);
}

void GuardedAccelerator::launch(StreamKind stream, const KernelCall& call) {
  const Access access(*this);
  HostAccelerator::launch(stream, call);
}

std::span<const std::byte> GuardedAccelerator::host_view(std::span<const std::byte> device) {
  const Access access(*this);
  std::byte* view = mirror_ + (device.data() - arena_);
  if (!device.empty()) std::memcpy(view, device.data(), device.size());
  return {view, device.size()};
}

}  // namespace lockstep
