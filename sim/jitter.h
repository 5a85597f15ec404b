// Jitter of operation durations, from the run's seed: no two operations keep a fixed phase, and the
// same seed gives the same durations.
#pragma once

#include <cstdint>

#include "core/random.h"
#include "device/stepped.h"

namespace lockstep::sim {

class Jitter : public Schedule {
 public:
  // Lengthens each duration by up to `share` of itself. REQUIRES: share >= 0.
  Jitter(SplitMix64 random, double share) : random_(random), share_(share) {}
  Nanoseconds jitter(const Op& op, Nanoseconds nominal) override;

 private:
  SplitMix64 random_;
  double share_;
};

}  // namespace lockstep::sim
