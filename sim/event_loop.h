// The virtual clock and the event queue: one thread, ordered by (time, sequence number), nothing
// else.
//
//   heap_:    binary heap of (time, sequence, slot), the earliest at the front
//   actions_: the actions by slot, so that the heap moves 24 bytes; free slots are used again
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/clock.h"

namespace lockstep::sim {

class EventLoop : public Timers {
 public:
  Nanoseconds now() const override { return now_; }
  void after(Nanoseconds delay, std::function<void()> action) override;

  bool empty() const { return heap_.empty(); }
  // Moves the clock to the next event and runs it. REQUIRES: !empty().
  void run_next();
  // Events that have been run.
  std::uint64_t processed() const { return processed_; }

 private:
  struct Entry {
    Nanoseconds time;
    std::uint64_t sequence = 0;
    std::size_t slot = 0;
  };
  static bool later(const Entry& a, const Entry& b);
  std::size_t keep(std::function<void()> action);

  std::vector<Entry> heap_;
  std::vector<std::function<void()>> actions_;
  std::vector<std::size_t> free_slots_;
  Nanoseconds now_;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t processed_ = 0;
};

}  // namespace lockstep::sim
