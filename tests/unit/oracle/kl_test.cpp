#include "oracle/kl.h"

#include <cmath>
#include <limits>

#include "catch.h"

namespace lockstep::oracle {
namespace {

// Distributions (1/2, 1/2) and (1/4, 3/4), as logits with an offset that must not matter.
const std::vector<double> kHalves{5.0, 5.0};
const std::vector<double> kQuarters{-1.0, -1.0 + std::log(3.0)};

TEST_CASE("kl: logprobs of two outcomes") {
  const std::vector<double> quarters = log_softmax(kQuarters);
  REQUIRE(quarters[0] == Approx(-1.3862943611).epsilon(1e-9));  // ln 1/4
  REQUIRE(quarters[1] == Approx(-0.2876820724).epsilon(1e-9));  // ln 3/4
  const std::vector<float> large{1000.0f, 0.0f};
  REQUIRE(log_softmax(large)[0] == 0.0);
  REQUIRE(log_softmax(large)[1] == -1000.0);
}

TEST_CASE("kl: the divergence of two coins, by hand") {
  // 1/2 ln(1/2 / 1/4) + 1/2 ln(1/2 / 3/4) = 1/2 ln 2 - 1/2 ln 1.5 = 0.1438410362
  const double there = kl_divergence(log_softmax(kHalves), log_softmax(kQuarters));
  REQUIRE(there == Approx(0.1438410362).epsilon(1e-9));
  // 1/4 ln 1/2 + 3/4 ln 3/2 = -0.1732867951 + 0.3040988311
  const double back = kl_divergence(log_softmax(kQuarters), log_softmax(kHalves));
  REQUIRE(back == Approx(0.1308120360).epsilon(1e-9));
  REQUIRE(kl_divergence(log_softmax(kQuarters), log_softmax(kQuarters)) == 0.0);
}

TEST_CASE("kl: tiny differences keep their digits") {
  // Moving one logit of two equal ones by h gives KL = h^2 / 8 to leading order.
  const std::vector<double> moved{0.0, 1e-7};
  const std::vector<double> even{0.0, 0.0};
  const double kl = kl_divergence(log_softmax(even), log_softmax(moved));
  REQUIRE(kl == Approx(1.25e-15).epsilon(1e-2));
}

TEST_CASE("k3: e^r - 1 - r of the sampled token, never negative") {
  REQUIRE(k3_estimate(std::log(0.5), std::log(0.25)) == Approx(0.3068528194).epsilon(1e-9));
  REQUIRE(k3_estimate(std::log(0.25), std::log(0.5)) == Approx(0.1931471806).epsilon(1e-9));
  REQUIRE(k3_estimate(-1.5, -1.5) == 0.0);
}

TEST_CASE("count_differing: bits count, not values; NaNs are one value") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{1.0f, 0.0f, nan, 2.0f};
  const std::vector<float> b{1.0f, -0.0f, -nan, std::nextafter(2.0f, 3.0f)};
  REQUIRE(count_differing(a, a) == 0);
  REQUIRE(count_differing(a, b) == 2);
}

TEST_CASE("LogprobTally: means and maxima over positions") {
  const std::vector<float> halves{0.0f, 0.0f};
  const std::vector<float> moved{0.0f, 1.0f};
  // log_softmax(0, 1) = (-1.3132616875, -0.3132616875); ln 1/2 = -0.6931471806.
  const double kl = 0.5 * (1.3132616875 + 0.3132616875) - 0.6931471806;
  LogprobTally tally;
  tally.add_replica(halves, halves, TokenId{0});
  tally.add_replica(halves, moved, TokenId{1});
  RequestComparison result;
  tally.write_to(result);
  REQUIRE(result.differing_logprobs == 1);
  REQUIRE(*result.kl_mean == Approx(kl / 2));
  REQUIRE(*result.kl_max == Approx(kl));
  REQUIRE(*result.max_abs_dlogprob == Approx(1.3132616875 - 0.6931471806));
  // The sampled token was generated with -0.3132616875 and is replayed with ln 1/2.
  const double r = -0.6931471806 + 0.3132616875;
  REQUIRE(*result.k3_mean == Approx((std::exp(r) - 1 - r) / 2));
  REQUIRE_FALSE(result.kl_reference_max.has_value());
}

TEST_CASE("LogprobTally: a value that is not finite is left out, and still counted as different") {
  const std::vector<float> good{0.0f, 0.0f};
  const std::vector<float> bad{0.0f, std::numeric_limits<float>::quiet_NaN()};
  LogprobTally tally;
  tally.add_replica(good, bad, std::nullopt);
  tally.add_replica(good, good, std::nullopt);
  RequestComparison result;
  tally.write_to(result);
  REQUIRE(result.differing_logprobs == 1);
  REQUIRE_FALSE(result.kl_mean.has_value());
  REQUIRE_FALSE(result.kl_max.has_value());
  REQUIRE_FALSE(result.max_abs_dlogprob.has_value());
}

}  // namespace
}  // namespace lockstep::oracle
