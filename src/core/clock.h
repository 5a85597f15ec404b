// The environment's time. The simulator's is virtual; live mode has a real one. Both come in by
// constructor.
#pragma once

#include <functional>

#include "core/ids.h"

namespace lockstep {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds now() const = 0;
};

// A clock on which work can be put off. Calls run in order of (time, order of the call to after()).
class Timers : public Clock {
 public:
  // Runs `action` once at now() + delay. REQUIRES: delay >= 0.
  virtual void after(Nanoseconds delay, std::function<void()> action) = 0;
};

}  // namespace lockstep
