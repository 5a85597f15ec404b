#include "device/free_running.h"

#include <algorithm>
#include <utility>

namespace lockstep {

namespace {

constexpr std::array kStreams{StreamKind::compute, StreamKind::load, StreamKind::offload};

}  // namespace

FreeRunningDevice::~FreeRunningDevice() {
  accelerator_.synchronize();
}

void FreeRunningDevice::enqueue(StreamKind stream, Op op) {
  held_[index(stream)].push(Entry(std::move(op)));
}

void FreeRunningDevice::record(StreamKind stream, const DeviceEvent& event) {
  held_[index(stream)].push(Record{event});
}

void FreeRunningDevice::wait(StreamKind stream, const DeviceEvent& event) {
  held_[index(stream)].push(Wait{event});
}

void FreeRunningDevice::signal(const DeviceEvent& event) {
  reach(event);
}

void FreeRunningDevice::on_reached(const DeviceEvent& event, std::function<void()> action) {
  if (event.reached()) {
    action();
  } else {
    event.state()->waiters.push_back({std::move(action), true});
  }
}

bool FreeRunningDevice::run() {
  bool moved = false;
  for (bool launched = true; launched;) {
    launched = false;
    for (const StreamKind kind : kStreams) launched |= launch_from(kind);
    moved |= launched;
  }
  return reach_passed() || moved;
}

bool FreeRunningDevice::idle() const {
  return std::ranges::all_of(held_, [](const auto& held) { return held.empty(); }) &&
         std::ranges::all_of(under_way_, [](const auto& batches) { return batches.empty(); });
}

// A batch ends where events are recorded or the stream is held.
bool FreeRunningDevice::launch_from(StreamKind kind) {
  RingQueue<Entry>& held = held_[index(kind)];
  Batch batch;
  bool moved = false;
  while (!held.empty()) {
    if (const auto* waiting = std::get_if<Wait>(&held.front())) {
      const DeviceEvent::State& state = *waiting->event.state();
      if (!state.reached && state.mark == nullptr) break;
      if (!state.reached) accelerator_.wait(kind, state.mark);
      held.pop();
    } else if (std::holds_alternative<Op>(held.front())) {
      // Out of the queue first: the report may enqueue.
      batch.ops.push_back(std::get<Op>(held.pop()));
      launch(kind, batch.ops.back());
    } else {
      batch.events.push_back(std::get<Record>(held.pop()).event);
      batch.mark = accelerator_.record(kind);
      batch.events.back().state()->mark = batch.mark;
      under_way_[index(kind)].push_back(std::exchange(batch, {}));
    }
    moved = true;
  }
  if (!batch.ops.empty()) {
    batch.mark = accelerator_.record(kind);
    under_way_[index(kind)].push_back(std::move(batch));
  }
  return moved;
}

void FreeRunningDevice::launch(StreamKind kind, const Op& op) {
  accelerator_.work_on(op.name);
  if (!op.copies.empty()) accelerator_.copy(kind, op.copies, 0, 1);
  if (!op.fills.targets.empty()) accelerator_.fill(kind, op.fills.targets, op.fills.word);
  if (op.body) op.body();
  if (!op.report) return;
  accelerator_.synchronize();
  op.report();
}

bool FreeRunningDevice::reach_passed() {
  bool moved = false;
  for (const StreamKind kind : kStreams) {
    std::deque<Batch>& batches = under_way_[index(kind)];
    while (!batches.empty() && accelerator_.reached(*batches.front().mark)) {
      const Batch passed = std::move(batches.front());
      batches.pop_front();
      for (const DeviceEvent& event : passed.events) reach(event);
      moved = true;
    }
  }
  return moved;
}

void FreeRunningDevice::reach(const DeviceEvent& event) {
  DeviceEvent::State& state = *event.state();
  if (state.reached) return;
  state.reached = true;
  state.mark.reset();
  for (DeviceEvent::Waiter& waiter : std::exchange(state.waiters, {})) waiter.action();
}

}  // namespace lockstep
