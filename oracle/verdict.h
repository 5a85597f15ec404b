// What the oracle has found in a run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"

namespace lockstep::oracle {

struct Violation {
  std::string invariant;  // "B6", "CHECK:...", "U1"
  StepId step;
  Nanoseconds time;
  RankId rank;
  RequestId request = kNoRequest;
  std::string expected;
  std::string actual;
  std::optional<LayerId> layer;
  std::optional<Row> row;
  std::optional<Tokens> token;
};

// What was compared for one request, over its whole life.
struct RequestComparison {
  std::uint64_t logprobs_compared = 0;  // positions
  std::uint64_t differing_logprobs =
      0;  // single values that differ from the replica's (fingerprint: hidden words)
  std::optional<double> kl_mean;  // against the replica; none for fingerprint
  std::optional<double> kl_max;
  std::optional<double> kl_reference_mean;  // against fp64
  std::optional<double> kl_reference_max;
  std::optional<double> k3_mean;
  std::optional<double> max_abs_dlogprob;
};

struct Tally {
  std::uint64_t commits_verified = 0;  // with L > 0
  std::uint64_t rows_compared = 0;     // rows of any pool, D1
  std::uint64_t logprobs_compared = 0;
  std::uint64_t tokens_verified =
      0;  // positions whose rows and outputs were compared, restored ones included
};

struct Verdict {
  std::vector<Violation> violations;  // at most 100
  Tally tally;
  std::map<RequestId, RequestComparison> requests;
};

}  // namespace lockstep::oracle
