// What `lockstep trace` reports of a replay.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "core/cache_config.h"
#include "core/json.h"
#include "sim/result.h"
#include "sim/trace_file.h"

namespace lockstep::reports {

struct TraceSummary {
  std::int64_t requests = 0;
  std::int64_t block_references = 0;  // ids in the prompts
  std::int64_t device_hits = 0;       // references whose whole block was reused from the device
  std::int64_t store_hits = 0;        // ... was restored from the store
  std::int64_t restores = 0;          // requests that restored something from the store
  std::int64_t commits_verified = 0;
  std::int64_t tokens_verified = 0;
  std::int64_t not_completed = 0;  // requests with another outcome
  CacheConfig cache;               // of the replay
  std::chrono::duration<double> wall_time{0};

  double hit_rate() const;
  double tokens_per_second() const;
};

// Everything but `cache` and `wall_time`, which the caller knows.
TraceSummary summarize_trace(std::span<const sim::TraceRequest> requests,
                             const sim::RunResult& result);

// Lines for a person; `max_violations` of the violations.
std::string trace_text(const TraceSummary& summary, const sim::RunResult& result,
                       std::size_t max_violations);
Json trace_json(const std::string& file, const TraceSummary& summary,
                std::span<const sim::TraceRequest> requests, const sim::RunResult& result);

}  // namespace lockstep::reports
