// A device's memory as far as a machine without one can show it: host memory that only copies,
// fills and kernels can reach. Whoever follows a span of it elsewhere ends with a segmentation
// fault, as with memory of a GPU. Units of a kernel run from the last to the first, so that one
// which relies on an earlier one shows.
//
//   arena_   | buffer | scratch | ...            |   no access, but while a call is at work
//   mirror_  | what host_view() was asked for    |   the same places, for the host to read
//
// Streams run at once, or, deferred, as late as a GPU may run them: what is handed to a stream
// waits there until somebody asks for a mark or synchronizes, and then streams take turns in a
// drawn order that only marks restrict. Whoever relies on an order that no event gives reads old
// bytes.
//
// Not shown: that two operations really overlap.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/random.h"
#include "device/host_accelerator.h"

namespace lockstep {

// The memory and the streams of one device, which the accelerators of several ranks share.
class GuardedDevice {
 public:
  explicit GuardedDevice(bool deferred);
  ~GuardedDevice();
  GuardedDevice(const GuardedDevice&) = delete;
  GuardedDevice& operator=(const GuardedDevice&) = delete;

  std::span<std::byte> allocate(std::size_t size);
  // Memory of that size, used before if there is some.
  std::span<std::byte> take(std::size_t size);
  void give_back(std::span<std::byte> bytes);
  std::span<const std::byte> view(std::span<const std::byte> device);

  struct Mark : StreamMark {
    bool reached = false;
  };
  // A new stream, by number.
  std::size_t add_stream();
  // Runs at once, or later; device memory is open meanwhile.
  void run(std::size_t stream, std::function<void()> action);
  void wait(std::size_t stream, std::shared_ptr<const Mark> mark);
  // One step of one stream that can go on; false if none can.
  bool step();
  // Until the streams of all accelerators are empty or held.
  void drain();
  // A few steps, as many as are drawn.
  void let_run();

 private:
  struct Entry {
    std::function<void()> action;           // null: waits for
    std::shared_ptr<const Mark> mark = {};  // this
  };
  class Access;
  void perform(const std::function<void()>& action);

  bool deferred_;
  std::byte* arena_ = nullptr;
  std::byte* mirror_ = nullptr;
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<std::span<std::byte>>> free_;  // by size
  std::vector<std::deque<Entry>> streams_;
  SplitMix64 random_{1};
};

class GuardedAccelerator final : public HostAccelerator {
 public:
  explicit GuardedAccelerator(
      std::shared_ptr<GuardedDevice> device = std::make_shared<GuardedDevice>(false));

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
  std::shared_ptr<StreamMark> record(StreamKind stream) override;
  void wait(StreamKind stream, const std::shared_ptr<StreamMark>& mark) override;
  bool reached(const StreamMark& mark) override;
  void synchronize() override { device_->drain(); }
  std::span<const std::byte> host_view(std::span<const std::byte> device) override;

 private:
  std::shared_ptr<GuardedDevice> device_;
  std::array<std::size_t, kStreamCount> streams_{};  // their numbers
};

}  // namespace lockstep
