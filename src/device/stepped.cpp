#include "device/stepped.h"

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

constexpr std::size_t kCanaryBytes = 64;
constexpr std::size_t kAlignment = 64;
constexpr std::byte kCanary{0xc5};

bool intact(std::span<const std::byte> canary) {
  return std::ranges::all_of(canary, [](std::byte byte) { return byte == kCanary; });
}

}  // namespace

Nanoseconds Schedule::jitter(const Op& /*op*/, Nanoseconds nominal) {
  return nominal;
}

SteppedDevice::SteppedDevice(Timers& timers, CostModel cost, SteppedHooks hooks)
    : timers_(timers), cost_(cost), hooks_(hooks), lifeline_(std::make_shared<Lifeline>()) {
  lifeline_->device = this;
}

SteppedDevice::~SteppedDevice() {
  lifeline_->device = nullptr;
}

std::span<std::byte> SteppedDevice::allocate(std::string_view name, Bytes size) {
  CHECK("device.allocate", size >= Bytes{0});
  auto buffer = std::make_unique<Buffer>();
  buffer->name = name;
  buffer->memory.resize(size.index() + (2 * kCanaryBytes) + kAlignment);
  const auto address = reinterpret_cast<std::uintptr_t>(buffer->memory.data()) + kCanaryBytes;
  const std::size_t padding = (kAlignment - address % kAlignment) % kAlignment;
  const std::span<std::byte> all = std::span(buffer->memory).subspan(padding);
  buffer->before = all.first(kCanaryBytes);
  buffer->bytes = all.subspan(kCanaryBytes, size.index());
  buffer->after = all.subspan(kCanaryBytes + size.index(), kCanaryBytes);
  std::ranges::fill(buffer->before, kCanary);
  std::ranges::fill(buffer->after, kCanary);
  buffers_.push_back(std::move(buffer));
  return buffers_.back()->bytes;
}

void SteppedDevice::enqueue(StreamKind stream, Op op) {
  push(stream, Entry(std::move(op)));
}

void SteppedDevice::record(StreamKind stream, const DeviceEvent& event) {
  push(stream, Record{event});
}

void SteppedDevice::wait(StreamKind stream, const DeviceEvent& event) {
  push(stream, Wait{event});
}

void SteppedDevice::signal(const DeviceEvent& event) {
  reach(event);
}

void SteppedDevice::on_reached(const DeviceEvent& event, std::function<void()> action) {
  if (event.reached()) {
    action();
  } else {
    event.state().waiters.push_back(std::move(action));
  }
}

bool SteppedDevice::idle() const {
  return std::ranges::all_of(streams_, [](const Stream& stream) { return stream.entries.empty(); });
}

Result<void> SteppedDevice::check_canaries() const {
  for (const auto& buffer : buffers_) {
    if (!intact(buffer->before)) {
      return Error{"device buffer " + buffer->name + ": written before its first byte"};
    }
    if (!intact(buffer->after)) {
      return Error{"device buffer " + buffer->name + ": written beyond its last byte"};
    }
  }
  return {};
}

void SteppedDevice::push(StreamKind kind, Entry entry) {
  Stream& stream = at(kind);
  stream.entries.push(std::move(entry));
  if (!stream.running && !stream.blocked) make_ready(kind);
}

void SteppedDevice::make_ready(StreamKind kind) {
  Stream& stream = at(kind);
  if (stream.ready) return;
  stream.ready = true;
  ready_.push(kind);
  if (running_ready_ || wake_pending_) return;
  wake_pending_ = true;
  timers_.after(Nanoseconds{0}, [lifeline = lifeline_] {
    if (lifeline->device == nullptr) return;
    lifeline->device->wake_pending_ = false;
    lifeline->device->run_ready();
  });
}

void SteppedDevice::run_ready() {
  running_ready_ = true;
  while (!ready_.empty()) {
    const StreamKind kind = ready_.pop();
    at(kind).ready = false;
    advance(kind);
  }
  running_ready_ = false;
}

void SteppedDevice::advance(StreamKind kind) {
  Stream& stream = at(kind);
  bool go_on = !stream.running && !stream.blocked;
  while (go_on && !stream.entries.empty()) {
    Entry& head = stream.entries.front();
    if (std::holds_alternative<Op>(head)) {
      go_on = step_op(kind);
    } else if (std::holds_alternative<Wait>(head)) {
      go_on = step_wait(kind);
    } else {
      reach(std::get<Record>(stream.entries.pop()).event);
    }
  }
}

bool SteppedDevice::step_op(StreamKind kind) {
  Stream& stream = at(kind);
  const Op& op = std::get<Op>(stream.entries.front());
  Nanoseconds duration = cost_.of(op.link, op.bytes);
  if (hooks_.schedule != nullptr) duration = hooks_.schedule->jitter(op, duration);
  if (duration == Nanoseconds{0}) {
    finish_op(kind);
    return true;
  }
  stream.running = true;
  timers_.after(duration, [lifeline = lifeline_, kind] {
    if (lifeline->device != nullptr) lifeline->device->complete(kind);
  });
  return false;
}

bool SteppedDevice::step_wait(StreamKind kind) {
  Stream& stream = at(kind);
  const DeviceEvent& event = std::get<Wait>(stream.entries.front()).event;
  if (event.reached()) {
    stream.entries.pop();
    return true;
  }
  stream.blocked = true;
  event.state().waiters.emplace_back([lifeline = lifeline_, kind] {
    if (lifeline->device == nullptr) return;
    lifeline->device->at(kind).blocked = false;
    lifeline->device->make_ready(kind);
  });
  return false;
}

// The body may enqueue, so the operation leaves its stream first. The stream stays marked as
// running meanwhile: what the body enqueues into it follows in the caller's loop.
void SteppedDevice::finish_op(StreamKind kind) {
  Stream& stream = at(kind);
  stream.running = true;
  const Op op = std::get<Op>(stream.entries.pop());
  if (hooks_.listener != nullptr) hooks_.listener->on_op(kind, op);
  if (op.body) op.body();
  stream.running = false;
}

void SteppedDevice::complete(StreamKind kind) {
  running_ready_ =
      true;  // whatever becomes ready meanwhile is run below, without another call of the clock
  finish_op(kind);
  make_ready(kind);
  run_ready();
}

void SteppedDevice::reach(const DeviceEvent& event) {
  DeviceEvent::State& state = event.state();
  if (state.reached) return;
  state.reached = true;
  for (std::function<void()>& waiter : std::exchange(state.waiters, {})) {
    reached_actions_.push(std::move(waiter));
  }
  if (running_actions_) return;  // the loop below is already at work, further out
  running_actions_ = true;
  while (!reached_actions_.empty()) reached_actions_.pop()();
  running_actions_ = false;
}

}  // namespace lockstep
