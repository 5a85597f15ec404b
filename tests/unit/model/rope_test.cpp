#include "model/rope.h"

#include <cmath>

#include "catch.h"
#include "core/random.h"

namespace lockstep::model {
namespace {

// 1e6 is a token of a million at the fastest pair; long double has 11 bits more than double.
TEST_CASE("rope: sine and cosine are those of libm's long double to 3e-16") {
  SplitMix64 random(3);
  double worst = 0;
  for (const double limit : {1.0, 7.0, 100.0, 1e6}) {
    for (int i = 0; i < 20'000; ++i) {
      const double x = limit * static_cast<double>(random.next() >> 11) * 0x1p-53;
      const SineCosine found = sine_cosine(x);
      const long double sine = std::sin(static_cast<long double>(x));
      const long double cosine = std::cos(static_cast<long double>(x));
      worst = std::max({worst, static_cast<double>(std::fabs(found.sine - sine)),
                        static_cast<double>(std::fabs(found.cosine - cosine))});
    }
  }
  REQUIRE(worst < 3e-16);
  REQUIRE((sine_cosine(0).sine == 0 && sine_cosine(0).cosine == 1));
}

TEST_CASE("rope: pairs of each head turn, the rest stays, position 0 turns nothing") {
  // Steps 1 and 100^(-1/2) = 0.1; elements 4 and 5 of a head do not turn.
  const Rope rope(4, 100.0f);
  std::vector<float> rows = {1, 0, 0, 1, 5, 6, 0, 2, 1, 0, 7, 8};
  const std::vector<float> before = rows;
  rope.rotate(0, 2, 6, rows.data());
  REQUIRE(rows == before);
  rope.rotate(3, 2, 6, rows.data());
  // (x0, x2) by 3 and (x1, x3) by 0.3.
  const double expected[] = {
      std::cos(3.0),  -std::sin(0.3),    std::sin(3.0), std::cos(0.3),     5, 6,
      -std::sin(3.0), 2 * std::cos(0.3), std::cos(3.0), 2 * std::sin(0.3), 7, 8};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i] == Approx(expected[i]).margin(1e-7));
  }
}

}  // namespace
}  // namespace lockstep::model
