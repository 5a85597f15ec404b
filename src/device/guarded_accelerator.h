// A device's memory as far as a machine without one can show it: host memory that only copies,
// fills and kernels can reach. Whoever follows a span of it elsewhere ends with a segmentation
// fault, as with memory of a GPU.
//
//   arena_   | buffer | scratch | ...            |   no access, but while a call is at work
//   mirror_  | what host_view() was asked for    |   the same places, for the host to read
//
// Not shown: that work on streams overlaps, and that host memory is read later than the call.
#pragma once

#include <map>
#include <vector>

#include "device/host_accelerator.h"

namespace lockstep {

class GuardedAccelerator final : public HostAccelerator {
 public:
  GuardedAccelerator();
  ~GuardedAccelerator() override;

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
  // Opens the used part of the arena as long as it lives.
  class Access;

  std::byte* arena_ = nullptr;
  std::byte* mirror_ = nullptr;
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<std::span<std::byte>>> free_;  // scratch, by size
};

}  // namespace lockstep
