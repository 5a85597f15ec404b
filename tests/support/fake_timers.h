// A virtual clock for tests of floors below sim: calls run in order of (time, order of after()).
#pragma once

#include <map>
#include <utility>

#include "core/clock.h"

namespace lockstep::testing {

class FakeTimers : public Timers {
 public:
  Nanoseconds now() const override { return now_; }
  void after(Nanoseconds delay, std::function<void()> action) override {
    pending_.emplace(now_ + delay, std::move(action));  // equal keys keep their order
  }

  bool empty() const { return pending_.empty(); }
  void run_next() {
    auto next = pending_.extract(pending_.begin());
    now_ = next.key();
    next.mapped()();
  }
  void run_all() {
    while (!empty()) run_next();
  }
  // Runs what is due up to and including `time`, and stops there.
  void run_until(Nanoseconds time) {
    while (!empty() && pending_.begin()->first <= time) run_next();
    now_ = time;
  }

 private:
  Nanoseconds now_;
  std::multimap<Nanoseconds, std::function<void()>> pending_;
};

}  // namespace lockstep::testing
