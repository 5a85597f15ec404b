#include "device/guarded_accelerator.h"

#include <sys/mman.h>

#include <cstring>

#include "core/check.h"

namespace lockstep {

namespace {

// Address space, not memory.
constexpr std::size_t kArenaBytes = std::size_t{1} << 36;
constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kMostDrawnSteps = 4;

std::byte* reserve(int protection) {
  void* memory =
      mmap(nullptr, kArenaBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK("guarded.reserve", memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

}  // namespace

// Opens the used part of the arena as long as it lives.
class GuardedDevice::Access {
 public:
  explicit Access(const GuardedDevice& device) : device_(device) {
    CHECK("guarded.open",
          device.used_ == 0 || mprotect(device.arena_, device.used_, PROT_READ | PROT_WRITE) == 0);
  }
  ~Access() {
    if (device_.used_ > 0) mprotect(device_.arena_, device_.used_, PROT_NONE);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

 private:
  const GuardedDevice& device_;
};

GuardedDevice::GuardedDevice(bool deferred)
    : deferred_(deferred), arena_(reserve(PROT_NONE)), mirror_(reserve(PROT_READ | PROT_WRITE)) {}

GuardedDevice::~GuardedDevice() {
  munmap(arena_, kArenaBytes);
  munmap(mirror_, kArenaBytes);
}

std::span<std::byte> GuardedDevice::allocate(std::size_t size) {
  CHECK("guarded.full", used_ + size <= kArenaBytes - kPage);
  const std::span<std::byte> bytes(arena_ + used_, size);
  used_ += (size + kPage - 1) / kPage * kPage;
  return bytes;
}

std::span<std::byte> GuardedDevice::take(std::size_t size) {
  std::vector<std::span<std::byte>>& known = free_[size];
  if (known.empty()) return allocate(size);
  const std::span<std::byte> bytes = known.back();
  known.pop_back();
  return bytes;
}

void GuardedDevice::give_back(std::span<std::byte> bytes) {
  free_[bytes.size()].push_back(bytes);
}

std::span<const std::byte> GuardedDevice::view(std::span<const std::byte> device) {
  std::byte* at = mirror_ + (device.data() - arena_);
  const Access access(*this);
  if (!device.empty()) std::memcpy(at, device.data(), device.size());
  return {at, device.size()};
}

std::size_t GuardedDevice::add_stream() {
  streams_.emplace_back();
  return streams_.size() - 1;
}

void GuardedDevice::perform(const std::function<void()>& action) {
  const Access access(*this);
  action();
}

void GuardedDevice::run(std::size_t stream, std::function<void()> action) {
  if (deferred_) {
    streams_[stream].push_back({std::move(action)});
  } else {
    perform(action);
  }
}

void GuardedDevice::wait(std::size_t stream, std::shared_ptr<const Mark> mark) {
  if (deferred_) streams_[stream].push_back({nullptr, std::move(mark)});
}

bool GuardedDevice::step() {
  std::vector<std::size_t> runnable;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    std::deque<Entry>& entries = streams_[i];
    while (!entries.empty() && !entries.front().action && entries.front().mark->reached) {
      entries.pop_front();
    }
    if (!entries.empty() && entries.front().action) runnable.push_back(i);
  }
  if (runnable.empty()) return false;
  std::deque<Entry>& chosen = streams_[runnable[random_.below(runnable.size())]];
  const Entry entry = std::move(chosen.front());
  chosen.pop_front();
  perform(entry.action);
  return true;
}

void GuardedDevice::drain() {
  while (step()) {
  }
}

void GuardedDevice::let_run() {
  for (std::uint64_t steps = random_.below(kMostDrawnSteps); steps > 0 && step(); --steps) {
  }
}

GuardedAccelerator::GuardedAccelerator(std::shared_ptr<GuardedDevice> device)
    : device_(std::move(device)) {
  for (std::size_t& stream : streams_) stream = device_->add_stream();
}

std::span<std::byte> GuardedAccelerator::allocate(std::string_view /*name*/, Bytes size) {
  CHECK("device.allocate", size >= Bytes{0});
  return device_->allocate(size.index());
}

OwnedBytes GuardedAccelerator::scratch(Bytes size) {
  const std::size_t stream = streams_[index(StreamKind::compute)];
  return {device_->take(size.index()), [device = device_, stream](std::span<std::byte> bytes) {
            device->run(stream, [&owner = *device, bytes] { owner.give_back(bytes); });
          }};
}

void GuardedAccelerator::copy(StreamKind stream, const CopyList& copies, std::size_t piece,
                              std::size_t pieces) {
  device_->run(streams_[index(stream)], [copies, piece, pieces] { copies.copy(piece, pieces); });
}

void GuardedAccelerator::upload(StreamKind stream, std::span<std::byte> target,
                                std::span<const std::byte> source) {
  CHECK("device.upload", target.size() == source.size());
  device_->run(streams_[index(stream)],
               [target, kept = std::vector<std::byte>(source.begin(), source.end())] {
                 if (!kept.empty()) std::memcpy(target.data(), kept.data(), kept.size());
               });
}

void GuardedAccelerator::fill(StreamKind stream, std::span<const std::span<std::byte>> targets,
                              std::uint32_t word) {
  if (targets.empty()) return;
  device_->run(streams_[index(stream)],
               [this, stream, word, kept = std::vector(targets.begin(), targets.end())] {
                 HostAccelerator::fill(stream, kept, word);
               });
}

void GuardedAccelerator::launch(StreamKind stream, const KernelCall& call) {
  const auto* first = static_cast<const std::byte*>(call.kernel);
  // Vectors of bytes are aligned for every kernel's parameters.
  device_->run(streams_[index(stream)],
               [emulate = call.emulate, units = call.units,
                kernel = std::vector<std::byte>(first, first + call.kernel_bytes)] {
                 for (std::int64_t unit = units; unit-- > 0;) emulate(kernel.data(), unit);
               });
}

std::shared_ptr<StreamMark> GuardedAccelerator::record(StreamKind stream) {
  auto mark = std::make_shared<GuardedDevice::Mark>();
  device_->run(streams_[index(stream)], [mark] { mark->reached = true; });
  return mark;
}

void GuardedAccelerator::wait(StreamKind stream, const std::shared_ptr<StreamMark>& mark) {
  device_->wait(streams_[index(stream)], std::static_pointer_cast<const GuardedDevice::Mark>(mark));
}

bool GuardedAccelerator::reached(const StreamMark& mark) {
  device_->let_run();
  return static_cast<const GuardedDevice::Mark&>(mark).reached;
}

std::span<const std::byte> GuardedAccelerator::host_view(std::span<const std::byte> device) {
  return device_->view(device);
}

}  // namespace lockstep
