// What moves bytes and runs kernels: the memory of one device and its streams. A Device decides
// when an operation runs; an accelerator does what the operation says.
//
//   HostAccelerator    (host_accelerator.h) host memory; everything is done at once
//   GuardedAccelerator (guarded_accelerator.h) the same, in memory that the host cannot touch: what
//                      a CUDA device does, as far as a machine without one can show it
//   CUDA               (cuda_accelerator.h) real streams and events
//
// Spans of device memory are names: only copies, fills and kernels may follow them. Everything
// that is handed to a stream is done in the order of the calls on that stream; streams are ordered
// by record() and wait() only. An error of the device is a failed CHECK whose text names the
// operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/ids.h"
#include "device/copy_list.h"
#include "device/owned_bytes.h"
#include "device/stream_kind.h"

namespace lockstep {

// One launch: `units` warps, each of which runs the kernel for its own unit (device/kernel.h).
struct KernelCall {
  std::string_view name;
  const void* entry = nullptr;   // the kernel's entry on the device; null where it was not compiled
  const void* kernel = nullptr;  // its parameters, copied by launch()
  std::size_t kernel_bytes = 0;
  void (*emulate)(const void* kernel, std::int64_t unit) = nullptr;  // one unit, on the host
  std::int64_t units = 0;
};

// A point in a stream that another stream or the host can wait for.
class StreamMark {
 public:
  virtual ~StreamMark() = default;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  Accelerator() = default;
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;

  virtual std::string_view name() const = 0;
  // What errors name from now on: the operation that the next calls belong to.
  void work_on(std::string_view operation) { operation_ = operation; }
  // Whether the host may follow spans of device memory.
  virtual bool shares_host_memory() const = 0;

  // Zero-filled device memory, aligned to 64 bytes at least, as long as the accelerator lives.
  // `name` appears in errors.
  virtual std::span<std::byte> allocate(std::string_view name, Bytes size) = 0;
  // Device memory for one forward. Given back in the order of the compute stream: whatever was
  // enqueued there before may still use it.
  virtual OwnedBytes scratch(Bytes size) = 0;
  // Zero-filled host memory that copies reach without a detour (pinned).
  virtual OwnedBytes staging(Bytes size) = 0;

  // Piece `piece` of `pieces` of the list, in either direction. Host memory on either side must
  // stay as it is until the stream has passed.
  virtual void copy(StreamKind stream, const CopyList& copies, std::size_t piece,
                    std::size_t pieces) = 0;
  // As copy(), but `source` lies on the host and may change as soon as the call returns.
  virtual void upload(StreamKind stream, std::span<std::byte> target,
                      std::span<const std::byte> source) = 0;
  // Repeats `word` over each range; a rest shorter than a word gets the word's first bytes.
  virtual void fill(StreamKind stream, std::span<const std::span<std::byte>> targets,
                    std::uint32_t word) = 0;
  virtual void launch(StreamKind stream, const KernelCall& call) = 0;

  virtual std::shared_ptr<StreamMark> record(StreamKind stream) = 0;
  // The stream's later work runs behind the mark, which may be another accelerator's of this kind.
  virtual void wait(StreamKind stream, const std::shared_ptr<StreamMark>& mark) = 0;
  virtual bool reached(const StreamMark& mark) = 0;
  // Until all streams have done everything.
  virtual void synchronize() = 0;

  // The bytes of device memory as the host may read them now; valid until the same bytes are asked
  // for again. Not ordered with any stream.
  virtual std::span<const std::byte> host_view(std::span<const std::byte> device) = 0;

 protected:
  std::string_view operation() const { return operation_; }

 private:
  std::string_view operation_ = "start-up";
};

}  // namespace lockstep
