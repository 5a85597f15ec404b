// Compares a run with what its scenario expects. One sentence per expectation that was not met.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "sim/result.h"
#include "sim/scenario.h"

namespace lockstep::sim {

// Looks for the expected events among those of a run, in order, while it goes. Keeps no event.
class EventMatcher : public Observer {
 public:
  // `expected` and `request_names` outlive the matcher; names may be added while the run goes.
  EventMatcher(std::span<const ExpectedEvent> expected,
               const std::map<RequestId, std::string>& request_names)
      : expected_(expected), request_names_(request_names) {}

  void on_event(const Event& event) override;
  // How many of the expected events have come, from the first on.
  std::size_t matched() const { return matched_; }

 private:
  std::span<const ExpectedEvent> expected_;
  const std::map<RequestId, std::string>& request_names_;
  std::size_t matched_ = 0;
};

// The fields of a request's result, flat: "restored_tokens", "loaded_rows.full", "kl_max" (null
// where there is none).
ExpectedFields flat_fields(const RequestResult& request);
bool is_request_field(std::string_view path);
// Counters of a run, flat: "commits_verified", "faults_injected.fail", "sometimes.mamba_exist at
// commit".
ExpectedFields flat_counters(const RunResult& result);

// Sets result.unexpected. `events_matched` is EventMatcher::matched(). Without expectations (null)
// a run must pass.
void judge_expectations(const ExpectSpec* expect, std::size_t events_matched, RunResult& result);

}  // namespace lockstep::sim
