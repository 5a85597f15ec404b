// Two runs that should be the same, compared event by event: the first difference is named with
// what both runs say there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/result.h"
#include "sim/result.h"

namespace lockstep::sim {

// One number for everything that an event says.
std::uint64_t event_digest(const Event& event);

class EventRecorder : public Observer {
 public:
  void on_event(const Event& event) override { digests_.push_back(event_digest(event)); }
  const std::vector<std::uint64_t>& digests() const { return digests_; }

 private:
  std::vector<std::uint64_t> digests_;
};

// How an event reads; writers of event logs know.
using DescribeEvent = std::function<std::string(const Event&)>;
// Runs the same scenario once more; the observer may be null.
using RunOnceMore = std::function<Result<RunResult>(Observer*)>;

// Runs once more and compares with a first run that gave `result` and that `recorded` saw. Nothing
// if both are equal; else a sentence that numbers the first difference from 1. A digest holds the
// bytes of rows besides the events, so it may differ alone.
std::optional<std::string> find_difference(const RunResult& result, const EventRecorder& recorded,
                                           const RunOnceMore& run, const DescribeEvent& describe);

}  // namespace lockstep::sim
