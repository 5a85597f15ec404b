// Host memory as device memory. Every call is done when it returns, so all marks are reached and
// kernels run unit by unit on the calling thread.
#pragma once

#include <vector>

#include "device/accelerator.h"

namespace lockstep {

class HostAccelerator : public Accelerator {
 public:
  std::string_view name() const override { return "host"; }
  bool shares_host_memory() const override { return true; }
  std::span<std::byte> allocate(std::string_view name, Bytes size) override;
  OwnedBytes scratch(Bytes size) override { return staging(size); }
  OwnedBytes staging(Bytes size) override;
  void copy(StreamKind stream, const CopyList& copies, std::size_t piece,
            std::size_t pieces) override;
  void upload(StreamKind stream, std::span<std::byte> target,
              std::span<const std::byte> source) override;
  void fill(StreamKind stream, std::span<const std::span<std::byte>> targets,
            std::uint32_t word) override;
  void launch(StreamKind stream, const KernelCall& call) override;
  std::shared_ptr<StreamMark> record(StreamKind stream) override;
  void wait(StreamKind, const std::shared_ptr<StreamMark>&) override {}
  bool reached(const StreamMark&) override { return true; }
  void synchronize() override {}
  std::span<const std::byte> host_view(std::span<const std::byte> device) override {
    return device;
  }

 private:
  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace lockstep
