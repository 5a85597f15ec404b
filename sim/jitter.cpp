#include "sim/jitter.h"

namespace lockstep::sim {

Nanoseconds Jitter::jitter(const Op&, Nanoseconds nominal) {
  constexpr std::uint64_t kSteps = 1024;
  const auto step = static_cast<double>(random_.below(kSteps));
  const double longer = static_cast<double>(nominal.value()) * share_ * step / double{kSteps};
  return nominal + Nanoseconds{static_cast<std::int64_t>(longer)};
}

}  // namespace lockstep::sim
