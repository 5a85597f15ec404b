// The elementary functions as kernels, one float per lane.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/kernel.h"
#include "model/detmath.h"

namespace lockstep::bench {

// `Function` has kName and a static run(float).
template <class Function>
struct MapKernel {
  static constexpr std::string_view kName = Function::kName;
  const float* inputs;
  std::int64_t count;
  float* outputs;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t unit) const {
    warp.each([&](int lane) {
      const std::int64_t i = unit * kWarpLanes + lane;
      if (i < count) outputs[i] = Function::run(inputs[i]);
    });
  }
};

#define LOCKSTEP_FUNCTION(Name, function)                \
  struct Name {                                          \
    static constexpr std::string_view kName = #function; \
    LOCKSTEP_HD static float run(float x) {              \
      return detmath::function(x);                       \
    }                                                    \
  }

LOCKSTEP_FUNCTION(Exp, exp);
LOCKSTEP_FUNCTION(ExpNeg, exp_neg);
LOCKSTEP_FUNCTION(Log, log);
LOCKSTEP_FUNCTION(Log1pUnit, log1p_unit);
LOCKSTEP_FUNCTION(Sigmoid, sigmoid);
LOCKSTEP_FUNCTION(Silu, silu);
LOCKSTEP_FUNCTION(Softplus, softplus);
LOCKSTEP_FUNCTION(Rsqrt, rsqrt);

#undef LOCKSTEP_FUNCTION

}  // namespace lockstep::bench
