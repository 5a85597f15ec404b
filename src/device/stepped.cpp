#include "device/stepped.h"

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

constexpr std::size_t kCanaryBytes = 64;
constexpr std::uint32_t kCanaryWord = 0xc5c5c5c5u;

bool intact(std::span<const std::byte> canary) {
  return std::ranges::all_of(canary,
                             [](std::byte byte) { return byte == std::byte{kCanaryWord & 0xffu}; });
}

}  // namespace

Nanoseconds Schedule::jitter(const Op& /*op*/, Nanoseconds nominal) {
  return nominal;
}

std::size_t Schedule::pieces() const {
  return 1;
}

bool Schedule::takes_turns() const {
  return false;
}

StreamKind Schedule::choose(std::span<const StreamKind> runnable) {
  return runnable.front();
}

SteppedDevice::SteppedDevice(Timers& timers, CostModel cost, SteppedHooks hooks,
                             Accelerator* accelerator)
    : timers_(timers),
      cost_(cost),
      hooks_(hooks),
      takes_turns_(hooks.schedule != nullptr && hooks.schedule->takes_turns()),
      accelerator_(accelerator != nullptr ? accelerator : &host_),
      lifeline_(std::make_shared<Lifeline>()) {
  lifeline_->device = this;
}

SteppedDevice::~SteppedDevice() {
  lifeline_->device = nullptr;
}

std::span<std::byte> SteppedDevice::allocate(std::string_view name, Bytes size) {
  const Bytes canaries{2 * kCanaryBytes};
  const std::span<std::byte> all = accelerator_->allocate(name, size + canaries);
  const Buffer buffer{std::string(name), all.first(kCanaryBytes),
                      all.subspan(kCanaryBytes, size.index()), all.last(kCanaryBytes)};
  accelerator_->fill(StreamKind::compute, std::array{buffer.before, buffer.after}, kCanaryWord);
  accelerator_->synchronize();
  buffers_.push_back(buffer);
  return buffer.bytes;
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
  if (hooks_.listener != nullptr && !event.reached()) hooks_.listener->signalled(*event.state());
  reach(event);
}

void SteppedDevice::on_reached(const DeviceEvent& event, std::function<void()> action) {
  if (reached(event)) {
    action();
  } else {
    event.state()->waiters.push_back({std::move(action), true});
  }
}

bool SteppedDevice::reached(const DeviceEvent& event) {
  if (!event.reached()) return false;
  if (hooks_.listener != nullptr) hooks_.listener->seen_by_host(*event.state());
  return true;
}

bool SteppedDevice::idle() const {
  return std::ranges::all_of(streams_, [](const Stream& stream) { return stream.entries.empty(); });
}

Result<void> SteppedDevice::check_canaries() {
  for (const Buffer& buffer : buffers_) {
    if (!intact(accelerator_->host_view(buffer.before))) {
      return Error{"device buffer " + buffer.name + ": written before its first byte"};
    }
    if (!intact(accelerator_->host_view(buffer.after))) {
      return Error{"device buffer " + buffer.name + ": written beyond its last byte"};
    }
  }
  return {};
}

void SteppedDevice::push(StreamKind kind, Entry entry) {
  Stream& stream = at(kind);
  stream.entries.push({std::move(entry), next_number_++});
  if (hooks_.listener != nullptr) hooks_.listener->enqueued(kind);
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
  do {
    while (!ready_.empty()) {
      const StreamKind kind = ready_.pop();
      at(kind).ready = false;
      advance(kind);
    }
  } while (takes_turns_ && give_turn());
  running_ready_ = false;
}

void SteppedDevice::advance(StreamKind kind) {
  Stream& stream = at(kind);
  bool go_on = !stream.running && !stream.blocked;
  while (go_on && !stream.entries.empty()) {
    const Entry& head = stream.entries.front().entry;
    if (std::holds_alternative<Op>(head)) {
      go_on = step_op(kind);
    } else if (std::holds_alternative<Wait>(head)) {
      go_on = step_wait(kind);
    } else {
      pass_record(kind);
    }
  }
}

bool SteppedDevice::step_op(StreamKind kind) {
  if (takes_turns_) return false;
  begin_op(kind);
  return run_piece(kind);
}

bool SteppedDevice::step_wait(StreamKind kind) {
  Stream& stream = at(kind);
  const DeviceEvent event = std::get<Wait>(stream.entries.front().entry).event;
  if (event.reached()) {
    stream.entries.pop();
    if (hooks_.listener != nullptr) hooks_.listener->waited(kind, *event.state());
    return true;
  }
  stream.blocked = true;
  const auto go_on = [lifeline = lifeline_, kind] {
    if (lifeline->device == nullptr) return;
    lifeline->device->at(kind).blocked = false;
    lifeline->device->make_ready(kind);
  };
  event.state()->waiters.push_back({go_on, false});
  return false;
}

void SteppedDevice::pass_record(StreamKind kind) {
  const DeviceEvent event = std::get<Record>(at(kind).entries.pop().entry).event;
  if (hooks_.listener != nullptr) hooks_.listener->recorded(kind, *event.state());
  reach(event);
}

bool SteppedDevice::give_turn() {
  if (turn_given_) return false;
  std::vector<StreamKind> runnable;
  for (StreamKind kind : {StreamKind::compute, StreamKind::load, StreamKind::offload}) {
    const Stream& stream = at(kind);
    if (!stream.blocked && !stream.entries.empty()) runnable.push_back(kind);
  }
  if (runnable.empty()) return false;
  std::ranges::sort(runnable, {}, [&](StreamKind kind) { return at(kind).entries.front().number; });
  const StreamKind chosen =
      runnable.size() == 1 ? runnable.front() : hooks_.schedule->choose(runnable);
  if (!at(chosen).head.begun) begin_op(chosen);
  turn_given_ = true;
  if (!run_piece(chosen)) return false;
  turn_given_ = false;
  make_ready(chosen);
  return true;
}

void SteppedDevice::begin_op(StreamKind kind) {
  Stream& stream = at(kind);
  const Op& op = std::get<Op>(stream.entries.front().entry);
  stream.head = {.begun = true, .duration = cost_.of(op.link, op.bytes)};
  if (hooks_.schedule != nullptr) {
    stream.head.duration = hooks_.schedule->jitter(op, stream.head.duration);
    if (!op.copies.empty() && stream.head.duration > Nanoseconds{0}) {
      stream.head.pieces = hooks_.schedule->pieces();
    }
  }
  if (hooks_.listener != nullptr) hooks_.listener->op_begins(kind, op);
}

bool SteppedDevice::run_piece(StreamKind kind) {
  Stream& stream = at(kind);
  const Progress& head = stream.head;
  if (head.duration == Nanoseconds{0}) {
    do_piece(kind);
    return true;
  }
  const auto pieces = static_cast<std::int64_t>(head.pieces);
  const auto done = static_cast<std::int64_t>(head.done);
  // Piece i ends at duration * (i + 1) / pieces, rounded down.
  const Nanoseconds before{head.duration * done / Nanoseconds{pieces}};
  const Nanoseconds after{head.duration * (done + 1) / Nanoseconds{pieces}};
  stream.running = true;
  timers_.after(after - before, [lifeline = lifeline_, kind] {
    if (lifeline->device != nullptr) lifeline->device->piece_is_due(kind);
  });
  return false;
}

void SteppedDevice::piece_is_due(StreamKind kind) {
  // What becomes ready meanwhile is run below, without another call of the clock.
  running_ready_ = true;
  turn_given_ = false;
  do_piece(kind);
  Stream& stream = at(kind);
  stream.running = false;
  if (!takes_turns_ && stream.head.begun) {
    run_piece(kind);
  } else {
    make_ready(kind);
  }
  run_ready();
}

void SteppedDevice::do_piece(StreamKind kind) {
  Stream& stream = at(kind);
  const Op& op = std::get<Op>(stream.entries.front().entry);
  if (!op.copies.empty()) {
    if (hooks_.listener != nullptr) hooks_.listener->bytes_begin(op);
    accelerator_->work_on(op.name);
    accelerator_->copy(kind, op.copies, stream.head.done, stream.head.pieces);
    accelerator_->synchronize();
    if (hooks_.listener != nullptr) hooks_.listener->bytes_end(op);
  }
  if (++stream.head.done == stream.head.pieces) finish_op(kind);
}

// The body may enqueue, so the operation leaves its stream first. The stream stays marked as
// running meanwhile: what the body enqueues into it follows in the caller's loop.
void SteppedDevice::finish_op(StreamKind kind) {
  Stream& stream = at(kind);
  stream.running = true;
  const Op op = std::get<Op>(stream.entries.pop().entry);
  if (op.body || !op.fills.targets.empty()) {
    if (hooks_.listener != nullptr) hooks_.listener->bytes_begin(op);
    accelerator_->work_on(op.name);
    accelerator_->fill(kind, op.fills.targets, op.fills.word);
    if (op.body) op.body();
    accelerator_->synchronize();
    if (hooks_.listener != nullptr) hooks_.listener->bytes_end(op);
  }
  if (op.report) op.report();
  stream.running = false;
  stream.head = {};
}

void SteppedDevice::reach(const DeviceEvent& event) {
  DeviceEvent::State& state = *event.state();
  if (state.reached) return;
  state.reached = true;
  for (DeviceEvent::Waiter& waiter : std::exchange(state.waiters, {})) {
    reached_actions_.push({std::move(waiter), event.state()});
  }
  run_host_actions();
}

void SteppedDevice::run_host_actions() {
  if (running_actions_) return;  // the loop below is already at work, further out
  running_actions_ = true;
  while (!reached_actions_.empty()) {
    const HostAction next = reached_actions_.pop();
    if (next.waiter.on_host && hooks_.listener != nullptr) {
      hooks_.listener->seen_by_host(*next.event);
    }
    next.waiter.action();
  }
  running_actions_ = false;
}

}  // namespace lockstep
