#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/check.h"
#include "device/cuda/launch.cuh"
#include "device/cuda_accelerator.h"
#include "device/memory_kernels.h"

namespace lockstep {

LOCKSTEP_CUDA_ENTRY(CopyKernel);
LOCKSTEP_CUDA_ENTRY(FillKernel);

namespace {

constexpr std::size_t kUploadBytes = std::size_t{8} << 20;
constexpr std::size_t kUploadAlignment = 16;
constexpr std::size_t kSmallestPinned = std::size_t{4} << 10;

std::string text(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")";
}

// Pinned host memory in blocks of powers of two, which are slow to get and so are kept. Shared by
// whoever still owns a block.
class PinnedPool {
 public:
  ~PinnedPool() {
    for (auto& [size, blocks] : free_) {
      for (std::byte* block : blocks) cudaFreeHost(block);
    }
  }

  // Null if the driver has no more.
  std::byte* take(std::size_t size) {
    std::vector<std::byte*>& known = free_[class_of(size)];
    if (!known.empty()) {
      std::byte* block = known.back();
      known.pop_back();
      return block;
    }
    void* block = nullptr;
    const cudaError_t error = cudaHostAlloc(&block, class_of(size), cudaHostAllocDefault);
    return error == cudaSuccess ? static_cast<std::byte*>(block) : nullptr;
  }
  void give_back(std::byte* block, std::size_t size) { free_[class_of(size)].push_back(block); }

 private:
  static std::size_t class_of(std::size_t size) {
    std::size_t bytes = kSmallestPinned;
    while (bytes < size) bytes *= 2;
    return bytes;
  }
  std::map<std::size_t, std::vector<std::byte*>> free_;
};

class CudaMark final : public StreamMark {
 public:
  explicit CudaMark(cudaEvent_t event) : event_(event) {}
  ~CudaMark() override { cudaEventDestroy(event_); }
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_;
};

class CudaAccelerator final : public Accelerator {
 public:
  // After an error nothing of the object may be used.
  Result<void> start();
  ~CudaAccelerator() override;

  std::string_view name() const override { return "cuda"; }
  bool shares_host_memory() const override { return false; }
  std::span<std::byte> allocate(std::string_view name, Bytes size) override;
  OwnedBytes scratch(Bytes size) override;
  OwnedBytes staging(Bytes size) override;
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
  void synchronize() override;
  std::span<const std::byte> host_view(std::span<const std::byte> device) override;

 private:
  cudaStream_t at(StreamKind kind) const { return streams_[index(kind)]; }
  void must(cudaError_t error, std::string_view call) const;
  bool on_device(const std::byte* address) const;
  void copy_over_link(cudaStream_t stream, const std::vector<CopyList::Range>& ranges);
  void copy_on_device(StreamKind stream, const std::vector<CopyList::Range>& ranges);

  std::array<cudaStream_t, kStreamCount> streams_{};
  std::vector<void*> buffers_;
  std::map<std::uintptr_t, std::size_t> device_memory_;     // address and size of what is allocated
  std::map<std::uintptr_t, std::vector<std::byte>> views_;  // by the address of the buffer
  std::shared_ptr<PinnedPool> pinned_ = std::make_shared<PinnedPool>();
  std::byte* uploads_ = nullptr;  // pinned; filled from the front, used again once all is copied
  std::size_t uploads_used_ = 0;
};

Result<void> CudaAccelerator::start() {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
    return Error{"no CUDA device can be used: " + text(error)};
  }
  if (devices == 0) return Error{"no CUDA device: the driver lists none"};
  if (const cudaError_t error = cudaSetDevice(0); error != cudaSuccess) {
    return Error{"CUDA device 0 cannot be used: " + text(error)};
  }
  cudaFuncAttributes attributes{};
  const cudaError_t loaded = cudaFuncGetAttributes(&attributes, cuda_entry<CopyKernel>());
  if (loaded != cudaSuccess) {
    return Error{"CUDA device 0 does not run this build's code (sm_90 and its PTX): " +
                 text(loaded)};
  }
  for (cudaStream_t& stream : streams_) {
    if (const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        error != cudaSuccess) {
      return Error{"CUDA device 0 has no streams: " + text(error)};
    }
  }
  // Scratch that is given back stays with the process.
  cudaMemPool_t pool = nullptr;
  std::uint64_t keep_all = UINT64_MAX;
  if (cudaDeviceGetDefaultMemPool(&pool, 0) != cudaSuccess ||
      cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all) != cudaSuccess) {
    return Error{"CUDA device 0 has no stream-ordered memory"};
  }
  uploads_ = pinned_->take(kUploadBytes);
  if (uploads_ == nullptr) return Error{"no pinned host memory for CUDA device 0"};
  return {};
}

// Errors at the end of a process that is going down anyway have nobody to go to.
CudaAccelerator::~CudaAccelerator() {
  for (cudaStream_t stream : streams_) {
    if (stream == nullptr) continue;
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  for (void* buffer : buffers_) cudaFree(buffer);
  if (uploads_ != nullptr) pinned_->give_back(uploads_, kUploadBytes);
}

void CudaAccelerator::must(cudaError_t error, std::string_view call) const {
  if (error == cudaSuccess) return;
  const std::string what = std::string(operation()) + ": " + std::string(call) + ": " + text(error);
  fail_contract("cuda", what, __FILE__, __LINE__);
}

std::span<std::byte> CudaAccelerator::allocate(std::string_view name, Bytes size) {
  if (size == Bytes{0}) return {};
  void* memory = nullptr;
  must(cudaMalloc(&memory, size.index()), "cudaMalloc of the " + std::string(name));
  buffers_.push_back(memory);
  must(cudaMemsetAsync(memory, 0, size.index(), at(StreamKind::compute)), "cudaMemsetAsync");
  must(cudaStreamSynchronize(at(StreamKind::compute)), "clearing the " + std::string(name));
  device_memory_[reinterpret_cast<std::uintptr_t>(memory)] = size.index();
  return {static_cast<std::byte*>(memory), size.index()};
}

OwnedBytes CudaAccelerator::scratch(Bytes size) {
  if (size == Bytes{0}) return {};
  void* memory = nullptr;
  const cudaStream_t stream = at(StreamKind::compute);
  must(cudaMallocAsync(&memory, size.index(), stream), "cudaMallocAsync");
  device_memory_[reinterpret_cast<std::uintptr_t>(memory)] = size.index();
  return {{static_cast<std::byte*>(memory), size.index()},
          [this, stream](std::span<std::byte> owned) {
            device_memory_.erase(reinterpret_cast<std::uintptr_t>(owned.data()));
            cudaFreeAsync(owned.data(), stream);
          }};
}

OwnedBytes CudaAccelerator::staging(Bytes size) {
  std::byte* block = pinned_->take(size.index());
  must(block != nullptr ? cudaSuccess : cudaErrorMemoryAllocation, "cudaHostAlloc");
  std::memset(block, 0, size.index());
  return {{block, size.index()}, [pool = pinned_](std::span<std::byte> owned) {
            pool->give_back(owned.data(), owned.size());
          }};
}

bool CudaAccelerator::on_device(const std::byte* address) const {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const auto above = device_memory_.upper_bound(value);
  if (above == device_memory_.begin()) return false;
  const auto& [begin, size] = *std::prev(above);
  return value < begin + size;
}

void CudaAccelerator::copy(StreamKind stream, const CopyList& copies, std::size_t piece,
                           std::size_t pieces) {
  std::vector<CopyList::Range> on_link;
  std::vector<CopyList::Range> within;
  for (const CopyList::Range& range : copies.ranges(piece, pieces)) {
    const bool inside = on_device(range.target) && on_device(range.source);
    (inside ? within : on_link).push_back(range);
  }
  if (!on_link.empty()) copy_over_link(at(stream), on_link);
  if (!within.empty()) copy_on_device(stream, within);
}

void CudaAccelerator::copy_over_link(cudaStream_t stream,
                                     const std::vector<CopyList::Range>& ranges) {
  std::vector<void*> targets;
  std::vector<const void*> sources;
  std::vector<std::size_t> sizes;
  for (const CopyList::Range& range : ranges) {
    targets.push_back(range.target);
    sources.push_back(range.source);
    sizes.push_back(range.size);
  }
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  must(cudaMemcpyBatchAsync(targets.data(), sources.data(), sizes.data(), sizes.size(), &attributes,
                            &first, 1, stream),
       "cudaMemcpyBatchAsync");
}

void CudaAccelerator::copy_on_device(StreamKind stream,
                                     const std::vector<CopyList::Range>& ranges) {
  for (std::size_t begin = 0; begin < ranges.size(); begin += kMostRanges) {
    CopyKernel kernel{};
    const std::size_t end = std::min<std::size_t>(begin + kMostRanges, ranges.size());
    for (std::size_t i = begin; i < end; ++i) {
      const auto bytes = static_cast<std::int64_t>(ranges[i].size);
      kernel.ranges[i - begin] = {ranges[i].target, ranges[i].source, bytes};
      kernel.units.add(bytes);
    }
    lockstep::launch(*this, stream, kernel, kernel.units.total());
  }
}

void CudaAccelerator::upload(StreamKind stream, std::span<std::byte> target,
                             std::span<const std::byte> source) {
  for (std::size_t done = 0; done < source.size();) {
    if (uploads_used_ == kUploadBytes) {
      synchronize();
      uploads_used_ = 0;
    }
    const std::size_t count = std::min(source.size() - done, kUploadBytes - uploads_used_);
    std::byte* pinned = uploads_ + uploads_used_;
    std::memcpy(pinned, source.data() + done, count);
    must(cudaMemcpyAsync(target.data() + done, pinned, count, cudaMemcpyHostToDevice, at(stream)),
         "cudaMemcpyAsync to the device");
    const std::size_t padded = (count + kUploadAlignment - 1) / kUploadAlignment * kUploadAlignment;
    uploads_used_ = std::min(uploads_used_ + padded, kUploadBytes);
    done += count;
  }
}

void CudaAccelerator::fill(StreamKind stream, std::span<const std::span<std::byte>> targets,
                           std::uint32_t word) {
  for (std::size_t begin = 0; begin < targets.size(); begin += kMostRanges) {
    FillKernel kernel{};
    kernel.word = word;
    const std::size_t end = std::min<std::size_t>(begin + kMostRanges, targets.size());
    for (std::size_t i = begin; i < end; ++i) {
      const auto bytes = static_cast<std::int64_t>(targets[i].size());
      kernel.ranges[i - begin] = {targets[i].data(), bytes};
      kernel.units.add(bytes);
    }
    lockstep::launch(*this, stream, kernel, kernel.units.total());
  }
}

void CudaAccelerator::launch(StreamKind stream, const KernelCall& call) {
  const std::int64_t blocks = (call.units + kWarpsPerBlock - 1) / kWarpsPerBlock;
  const std::string what = "kernel " + std::string(call.name);
  must(blocks <= INT32_MAX ? cudaSuccess : cudaErrorInvalidConfiguration, what);
  std::int64_t units = call.units;
  std::array<void*, 2> arguments{const_cast<void*>(call.kernel), &units};
  must(cudaLaunchKernel(call.entry, dim3(static_cast<unsigned>(blocks)), dim3(kThreadsPerBlock),
                        arguments.data(), 0, at(stream)),
       what);
}

std::shared_ptr<StreamMark> CudaAccelerator::record(StreamKind stream) {
  cudaEvent_t event = nullptr;
  must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  auto mark = std::make_shared<CudaMark>(event);
  must(cudaEventRecord(event, at(stream)), "cudaEventRecord");
  return mark;
}

void CudaAccelerator::wait(StreamKind stream, const std::shared_ptr<StreamMark>& mark) {
  must(cudaStreamWaitEvent(at(stream), static_cast<const CudaMark&>(*mark).event(), 0),
       "cudaStreamWaitEvent");
}

bool CudaAccelerator::reached(const StreamMark& mark) {
  const cudaError_t state = cudaEventQuery(static_cast<const CudaMark&>(mark).event());
  if (state == cudaErrorNotReady) return false;
  must(state, "cudaEventQuery");
  return true;
}

void CudaAccelerator::synchronize() {
  for (cudaStream_t stream : streams_) must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

std::span<const std::byte> CudaAccelerator::host_view(std::span<const std::byte> device) {
  if (device.empty()) return {};
  const auto address = reinterpret_cast<std::uintptr_t>(device.data());
  const auto buffer = std::prev(device_memory_.upper_bound(address));
  std::vector<std::byte>& view = views_[buffer->first];
  view.resize(buffer->second);
  const std::span<std::byte> bytes =
      std::span(view).subspan(address - buffer->first, device.size());
  must(cudaMemcpy(bytes.data(), device.data(), device.size(), cudaMemcpyDeviceToHost),
       "cudaMemcpy to the host");
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Accelerator>> make_cuda_accelerator() {
  auto accelerator = std::make_unique<CudaAccelerator>();
  if (const Result<void> started = accelerator->start(); !started) return started.error();
  return std::unique_ptr<Accelerator>(std::move(accelerator));
}

Result<std::string> describe_cuda_device() {
  const Result<std::unique_ptr<Accelerator>> accelerator = make_cuda_accelerator();
  if (!accelerator) return accelerator.error();
  cudaDeviceProp properties{};
  int driver = 0;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess ||
      cudaDriverGetVersion(&driver) != cudaSuccess) {
    return Error{"CUDA device 0 does not tell its properties"};
  }
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", " +
         std::to_string(properties.totalGlobalMem >> 20) + " MiB, driver for CUDA " +
         std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
}

}  // namespace lockstep
