// A device's memory as far as a machine without one can show it: host memory that only copies,
// fills and kernels can reach. Whoever follows a span of it elsewhere ends with a segmentation
// fault, as with memory of a GPU. Units of a kernel run from the last to the first, so that one
// which relies on an earlier one shows.
//
//   arena_   | buffer | scratch | ...            |   no access, but while a call is at work
//   mirror_  | what host_view() was asked for    |   the same places, for the host to read
//
// Not shown: that work on streams overlaps, and that host memory is read later than the call.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device/host_accelerator.h"

namespace lockstep {

// The memory of one device, which the accelerators of several ranks may share.
class GuardedMemory {
 public:
  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::span<std::byte> allocate(std::size_t size);
  // Memory of that size, used before if there is some.
  std::span<std::byte> take(std::size_t size);
  void give_back(std::span<std::byte> bytes);
  std::span<const std::byte> view(std::span<const std::byte> device);

  // Opens the used part as long as it lives.
  class Access {
   public:
    explicit Access(const GuardedMemory& memory);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    const GuardedMemory& memory_;
  };

 private:
  std::byte* arena_ = nullptr;
  std::byte* mirror_ = nullptr;
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<std::span<std::byte>>> free_;  // by size
};

class GuardedAccelerator final : public HostAccelerator {
 public:
  explicit GuardedAccelerator(
      std::shared_ptr<GuardedMemory> memory = std::make_shared<GuardedMemory>())
      : memory_(std::move(memory)) {}

  std::string_view name() const override { return "emulated"; }
  bool shares_host_memory() const override { return false; }
  std::span<std::byte> allocate(std::string_view name, Bytes size) override;
  OwnedBytes scratch(Bytes size) override;
  void copy(StreamKind stream, const CopyList& copies, std::size_t piece,
            std::size_t pieces) override;
  void upload(StreamKind stream, std::span<std::byte> target,
              std::span<const std::byte> source) override;
  void fill(StreamKind stream, std::span<const std::span<std::byte>> targets,
            std::uint32_t word) override;
  void launch(StreamKind stream, const KernelCall& call) override;
  std::span<const std::byte> host_view(std::span<const std::byte> device) override;

 private:
  using Access = GuardedMemory::Access;
  std::shared_ptr<GuardedMemory> memory_;
};

}  // namespace lockstep
