// Replays a request trace against the engine, verified like any run.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/cache_config.h"
#include "core/result.h"
#include "model/spec.h"
#include "sim/result.h"
#include "sim/scenario.h"
#include "sim/scenario_run.h"
#include "sim/trace_file.h"

namespace lockstep::sim {

struct TraceOptions {
  model::ModelSpec model;
  CacheConfig cache;
  std::set<std::string>
      given;  // keys of the cache that were asked for; the others are sized by the trace
  StoreSpec store{.capacity_mib = 4096};
  std::optional<Tokens> max_output;  // generated tokens of a request are cut to this
};

// The tokens that `request` generates under `options`: at least one.
Tokens trace_output(const TraceOptions& options, const TraceRequest& request);

// The cache of a replay: what was given, and for the rest
// - page: the trace's block;
// - full_pages: the longest request plus 10 % of the distinct pages, so that most hits are
// restores; swa_pages the same;
// - mamba_slots: the version's default plus 10 % of the checkpoints that the prompts leave, one per
// prefill chunk. REQUIRES: requests not empty.
CacheConfig trace_cache(const TraceOptions& options, std::span<const TraceRequest> requests);

// Replays `requests` in order. The result's requests have the names of the trace. An error means
// that nothing was run.
Result<RunResult> run_trace(const TraceOptions& options, const std::vector<TraceRequest>& requests,
                            const RunOptions& run_options);

}  // namespace lockstep::sim
