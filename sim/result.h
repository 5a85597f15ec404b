// The result of one run, as the result file shows it (interfaces.md, Result).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "oracle/verdict.h"

namespace lockstep::sim {

struct RequestResult {
  std::string outcome = "stalled";  // completed, cancelled, refused, stalled
  Tokens restored_tokens;
  Tokens from_device;
  Tokens from_store;
  bool recomputed = false;
  std::map<std::string, std::int64_t> loaded_rows{{"full", 0}, {"swa", 0}, {"mamba", 0}};
  oracle::RequestComparison comparison;
  Nanoseconds load_wait;
  Nanoseconds forward_start;
  Nanoseconds ttft;
};

struct RunResult {
  std::string name;
  std::uint64_t seed = 0;
  std::string backend = "host";
  std::uint64_t digest = 0;
  // Of the tokens that requests got and the outputs they were taken from, by request and position:
  // equal wherever requests end with the same tokens, whatever was restored and in which order.
  std::uint64_t outputs_digest = 0;
  std::uint64_t events = 0;
  std::map<std::string, std::int64_t> counters;  // commits_verified, rows_compared, loads, ...
  std::map<std::string, std::int64_t> faults_injected;  // by action
  std::map<std::string, std::int64_t> sometimes;
  std::vector<oracle::Violation> violations;
  std::map<RequestId, std::string> request_names;
  std::map<std::string, RequestResult> requests;
  // Expectations that were not met, one sentence each; filled by judge_expectations().
  std::vector<std::string> unexpected;
  bool pass() const { return violations.empty(); }
  // 0 if nobody counted it.
  std::int64_t counter(const std::string& counted) const {
    const auto found = counters.find(counted);
    return found == counters.end() ? 0 : found->second;
  }
};

}  // namespace lockstep::sim
