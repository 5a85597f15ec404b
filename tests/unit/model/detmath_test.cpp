// The elementary functions against fp64: their errors, and the values at the edges. libm is used
// here and nowhere near the kernels.
#include "model/detmath.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"

namespace lockstep::detmath {
namespace {

using Function = float (*)(float);
using Reference = double (*)(double);

// Floats by bit pattern, first to last; negative ones go away from zero.
struct Sweep {
  const char* name;
  Function function;
  Reference reference;
  std::uint32_t first;
  std::uint32_t last;
  double bound_ulp;
};

double softplus_reference(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

const Sweep kSweeps[] = {
    {"exp, 2^-31 to 89", [](float x) { return exp(x); }, [](double x) { return std::exp(x); },
     0x30000000u, 0x42b20000u, 1.02},
    {"exp, -2^-31 to -104", [](float x) { return exp(x); }, [](double x) { return std::exp(x); },
     0xb0000000u, 0xc2d00000u, 1.02},
    {"exp_neg, -2^-31 to -87", [](float x) { return exp_neg(x); },
     [](double x) { return std::exp(x); }, 0xb0000000u, 0xc2ae0000u, 1.01},
    {"log, normal", [](float x) { return log(x); }, [](double x) { return std::log(x); },
     0x00800000u, 0x7f7fffffu, 0.92},
    {"log, subnormal", [](float x) { return log(x); }, [](double x) { return std::log(x); },
     0x00000001u, 0x007fffffu, 0.54},
    {"log1p_unit, to 1", [](float x) { return log1p_unit(x); },
     [](double x) { return std::log1p(x); }, 0x00800000u, 0x3f800000u, 1.53},
    {"sigmoid, 2^-31 to 87", [](float x) { return sigmoid(x); },
     [](double x) { return 1 / (1 + std::exp(-x)); }, 0x30000000u, 0x42ae0000u, 1.51},
    {"sigmoid, -2^-31 to -87", [](float x) { return sigmoid(x); },
     [](double x) { return 1 / (1 + std::exp(-x)); }, 0xb0000000u, 0xc2ae0000u, 2.41},
    {"silu, 2^-63 to 87", [](float x) { return silu(x); },
     [](double x) { return x / (1 + std::exp(-x)); }, 0x20000000u, 0x42ae0000u, 1.51},
    {"silu, -2^-63 to -84", [](float x) { return silu(x); },
     [](double x) { return x / (1 + std::exp(-x)); }, 0xa0000000u, 0xc2a80000u, 3.40},
    {"softplus, 2^-31 to 87", [](float x) { return softplus(x); }, softplus_reference, 0x30000000u,
     0x42ae0000u, 1.63},
    {"softplus, -2^-31 to -87", [](float x) { return softplus(x); }, softplus_reference,
     0xb0000000u, 0xc2ae0000u, 1.84},
    {"rsqrt, normal", [](float x) { return rsqrt(x); }, [](double x) { return 1 / std::sqrt(x); },
     0x00800000u, 0x7f7fffffu, 1.50},
};

// Distance to the exact value in units of the last place of a float near it.
double error_ulp(float got, double exact) {
  // From the midpoint between the largest float and 2^128 on, infinity is the right answer.
  if (std::fabs(exact) > 0x1.ffffffp+127) return std::isinf(got) ? 0 : 1e9;
  const int exponent = std::max(std::ilogb(exact) - 23, -149);
  return std::fabs(static_cast<double>(got) - exact) / std::ldexp(1.0, exponent);
}

double worst_of(const Sweep& sweep, std::uint64_t first, std::uint64_t step) {
  double worst = 0;
  for (std::uint64_t word = first; word <= sweep.last; word += step) {
    const float x = from_bits(static_cast<std::uint32_t>(word));
    worst = std::max(worst, error_ulp(sweep.function(x), sweep.reference(x)));
  }
  return worst;
}

void check_every(std::uint64_t step) {
  for (const Sweep& sweep : kSweeps) {
    INFO(sweep.name);
    REQUIRE(worst_of(sweep, sweep.first, step) <= sweep.bound_ulp);
  }
}

TEST_CASE("detmath: errors over every 10007th float") {
  check_every(10007);
}

TEST_CASE("detmath: errors over every 61st float", "[slow]") {
  check_every(61);
}

TEST_CASE("detmath: errors over every float", "[nightly]") {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  for (const Sweep& sweep : kSweeps) {
    std::vector<double> worst(threads);
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] { worst[t] = worst_of(sweep, sweep.first + t, threads); });
    }
    for (std::thread& worker : workers) worker.join();
    const double all = *std::max_element(worst.begin(), worst.end());
    WARN(sweep.name << ": " << all << " ulp");
    REQUIRE(all <= sweep.bound_ulp);
  }
}

TEST_CASE("detmath: values at the edges") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  REQUIRE(exp(0.0f) == 1.0f);
  REQUIRE(exp(kInfinity) == kInfinity);
  REQUIRE(exp(88.73f) == kInfinity);  // above ln of the largest float
  REQUIRE(exp(88.72f) < kInfinity);
  REQUIRE(exp(-kInfinity) == 0.0f);
  REQUIRE(exp(-103.0f) > 0.0f);  // a subnormal
  REQUIRE(exp_neg(0.0f) == 1.0f);
  REQUIRE(exp_neg(-87.01f) == 0.0f);
  REQUIRE(exp_neg(-kInfinity) == 0.0f);
  REQUIRE(exp_neg(-0x1.8p+99f) == 0.0f);  // the score of a masked token
  REQUIRE(log(1.0f) == 0.0f);
  REQUIRE(log(0.0f) == -kInfinity);
  REQUIRE(log(-0.0f) == -kInfinity);
  REQUIRE(log(kInfinity) == kInfinity);
  REQUIRE(std::isnan(log(-1.0f)));
  REQUIRE(sigmoid(0.0f) == 0.5f);
  REQUIRE(sigmoid(kInfinity) == 1.0f);
  REQUIRE(sigmoid(-kInfinity) == 0.0f);
  REQUIRE(silu(0.0f) == 0.0f);
  REQUIRE(silu(200.0f) == 200.0f);
  REQUIRE(softplus(kInfinity) == kInfinity);
  REQUIRE(softplus(-kInfinity) == 0.0f);
  REQUIRE(rsqrt(4.0f) == 0.5f);
  REQUIRE(std::isnan(exp(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace lockstep::detmath
