// How far two sets of logits are from each other, in fp64: full-vocabulary KL, the sampled estimate
// that serving engines report, and single values.
//
// KL alone is not enough: it can be 0 while bits differ, and below 1e-9 for another algorithm. So
// values that differ are counted, too, as logits: a logprob is a function of all the logits of its
// position, and equal logits are the stronger claim.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "oracle/verdict.h"

namespace lockstep::oracle {

// Natural logarithms of the probabilities.
std::vector<double> log_softmax(std::span<const float> logits);
std::vector<double> log_softmax(std::span<const double> logits);

// KL(p || q) of two distributions given by their logprobs. Computed as the mean under p of
// expm1(r) - r with r = log q - log p, whose terms are never negative and whose sum is the same.
double kl_divergence(std::span<const double> log_p, std::span<const double> log_q);

// The estimate of KL from one sampled token: expm1(r) - r with r = replayed - generated logprob.
double k3_estimate(double replayed, double generated);

// How many logits differ in their bits; every NaN counts as the same value.
std::uint64_t count_differing(std::span<const float> expected, std::span<const float> actual);

// Everything that was compared for one request, position by position.
class LogprobTally {
 public:
  // One position's logits, from the run and from the replica. `next`: the token that followed.
  void add_replica(std::span<const float> replica, std::span<const float> actual,
                   std::optional<TokenId> next);
  // One position's logits, from the run and from the fp64 reference. Returns their KL.
  double add_reference(std::span<const double> reference, std::span<const float> actual);

  // Fills in everything but logprobs_compared. A value that is not finite is left empty.
  void write_to(RequestComparison& comparison) const;

 private:
  struct MeanAndMaximum {
    double sum = 0;
    double maximum = 0;
    std::uint64_t count = 0;
    void add(double value);
    std::optional<double> mean() const;
    std::optional<double> largest() const;
  };

  std::uint64_t differing_ = 0;
  MeanAndMaximum kl_;
  MeanAndMaximum kl_reference_;
  MeanAndMaximum k3_;
  MeanAndMaximum dlogprob_;
};

}  // namespace lockstep::oracle
