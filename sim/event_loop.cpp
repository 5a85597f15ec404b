#include "sim/event_loop.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace lockstep::sim {

bool EventLoop::later(const Entry& a, const Entry& b) {
  return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
}

void EventLoop::after(Nanoseconds delay, std::function<void()> action) {
  CHECK("event_loop.delay", delay >= Nanoseconds{0});
  heap_.push_back(Entry{now_ + delay, next_sequence_++, keep(std::move(action))});
  std::ranges::push_heap(heap_, later);
}

void EventLoop::run_next() {
  CHECK("event_loop.empty", !heap_.empty());
  std::ranges::pop_heap(heap_, later);
  const Entry next = heap_.back();
  heap_.pop_back();
  now_ = next.time;
  ++processed_;
  // The action may add others, so it leaves its slot first.
  const std::function<void()> action = std::exchange(actions_[next.slot], {});
  free_slots_.push_back(next.slot);
  action();
}

std::size_t EventLoop::keep(std::function<void()> action) {
  if (free_slots_.empty()) {
    actions_.push_back(std::move(action));
    return actions_.size() - 1;
  }
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  actions_[slot] = std::move(action);
  return slot;
}

}  // namespace lockstep::sim
