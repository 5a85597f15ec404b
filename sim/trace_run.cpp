// A trace in a closed loop: requests arrive in the trace's order, each as soon as one of the
// `max_running` places is free; the trace's own arrival times are not used. Generated tokens never
// match the trace's next turn.
#include "sim/trace_run.h"

#include <algorithm>

#include "sim/trace_tokens.h"
#include "sim/world.h"

namespace lockstep::sim {

Result<RunResult> run_trace(const TraceOptions& options, const std::vector<TraceRequest>& requests,
                            const RunOptions& run_options) {
  WorldConfig config;
  config.model = options.model;
  config.cache = trace_cache(options, requests);
  config.store = options.store;
  config.seed = run_options.seed.value_or(1);
  config.stop_at_first = run_options.stop_at_first;
  config.backend = run_options.backend;
  config.watch = run_options.watch;
  config.keep_tokens = false;
  config.observer = run_options.observer;
  const auto places = static_cast<std::size_t>(config.cache.max_running);
  auto made = World::make(std::move(config));
  if (!made) return made.error();
  World& world = **made;

  std::uint64_t ordinal = 0;
  for (const TraceRequest& request : requests) {
    while (world.engine().unfinished().size() >= places && world.advance()) {
    }
    if (world.over()) break;
    world.submit(request.name, {trace_tokens(request, ordinal, world.model().vocab()),
                                trace_output(options, request),
                                {}});
    ++ordinal;
    if (run_options.progress) run_options.progress(ordinal, requests.size());
  }
  while (world.advance()) {
  }
  RunResult result = world.finish("trace");
  judge_expectations(nullptr, 0, result);
  return result;
}

}  // namespace lockstep::sim
