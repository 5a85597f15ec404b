#include "oracle/kl.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/check.h"

namespace lockstep::oracle {
namespace {

template <class Float>
std::vector<double> log_softmax_of(std::span<const Float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const Float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double log_sum = largest + std::log(sum);
  std::vector<double> logprobs(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logprobs[i] = static_cast<double>(logits[i]) - log_sum;
  }
  return logprobs;
}

std::uint32_t canonical_bits(float value) {
  return std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value);
}

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

}  // namespace

std::vector<double> log_softmax(std::span<const float> logits) {
  return log_softmax_of(logits);
}

std::vector<double> log_softmax(std::span<const double> logits) {
  return log_softmax_of(logits);
}

double kl_divergence(std::span<const double> log_p, std::span<const double> log_q) {
  CHECK("kl.sizes", log_p.size() == log_q.size());
  double sum = 0;
  for (std::size_t i = 0; i < log_p.size(); ++i) {
    const double r = log_q[i] - log_p[i];
    sum += std::exp(log_p[i]) * (std::expm1(r) - r);
  }
  return sum;
}

double k3_estimate(double replayed, double generated) {
  const double r = replayed - generated;
  return std::expm1(r) - r;
}

std::uint64_t count_differing(std::span<const float> expected, std::span<const float> actual) {
  CHECK("kl.sizes", expected.size() == actual.size());
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (canonical_bits(expected[i]) != canonical_bits(actual[i])) ++differing;
  }
  return differing;
}

void LogprobTally::add_replica(std::span<const float> replica, std::span<const float> actual,
                               std::optional<TokenId> next) {
  const std::uint64_t differing = count_differing(replica, actual);
  const std::vector<double> expected = log_softmax(replica);
  const std::vector<double> found = differing == 0 ? expected : log_softmax(actual);
  differing_ += differing;
  kl_.add(kl_divergence(expected, found));
  for (std::size_t i = 0; i < found.size(); ++i) dlogprob_.add(std::fabs(found[i] - expected[i]));
  if (next) k3_.add(k3_estimate(expected[next->index()], found[next->index()]));
}

double LogprobTally::add_reference(std::span<const double> reference,
                                   std::span<const float> actual) {
  const double kl = kl_divergence(log_softmax(reference), log_softmax(actual));
  kl_reference_.add(kl);
  return kl;
}

void LogprobTally::write_to(RequestComparison& comparison) const {
  comparison.differing_logprobs = differing_;
  comparison.kl_mean = kl_.mean();
  comparison.kl_max = kl_.largest();
  comparison.kl_reference_mean = kl_reference_.mean();
  comparison.kl_reference_max = kl_reference_.largest();
  comparison.k3_mean = k3_.mean();
  comparison.max_abs_dlogprob = dlogprob_.largest();
}

void LogprobTally::MeanAndMaximum::add(double value) {
  sum += value;
  // A NaN stays the maximum once it is there.
  if (!(value <= maximum)) maximum = std::isnan(maximum) ? maximum : value;
  ++count;
}

std::optional<double> LogprobTally::MeanAndMaximum::mean() const {
  return count == 0 ? std::nullopt : finite(sum / static_cast<double>(count));
}

std::optional<double> LogprobTally::MeanAndMaximum::largest() const {
  return count == 0 ? std::nullopt : finite(maximum);
}

}  // namespace lockstep::oracle
