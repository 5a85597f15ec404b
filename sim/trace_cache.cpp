// The sizes of a replay's cache (sim/trace_run.h).
#include <algorithm>
#include <string_view>

#include "sim/trace_run.h"

namespace lockstep::sim {
namespace {

std::int64_t divide_up(std::int64_t amount, std::int64_t unit) {
  return (amount + unit - 1) / unit;
}

// Ids name whole prefixes, so distinct whole blocks are distinct prefixes.
Tokens distinct_tokens(std::span<const TraceRequest> requests) {
  std::set<std::pair<std::string_view, std::uint64_t>> seen;
  Tokens total;
  for (const TraceRequest& request : requests) {
    for (std::int64_t i = 0; i < request.whole_blocks(); ++i) {
      if (seen.emplace(request.scope, request.blocks[static_cast<std::size_t>(i)]).second) {
        total += request.block;
      }
    }
  }
  return total;
}

}  // namespace

Tokens trace_output(const TraceOptions& options, const TraceRequest& request) {
  const Tokens wanted =
      options.max_output ? std::min(request.output, *options.max_output) : request.output;
  return std::max(Tokens{1}, wanted);
}

CacheConfig trace_cache(const TraceOptions& options, std::span<const TraceRequest> requests) {
  CacheConfig cache = options.cache;
  const auto sized_by_trace = [&](const char* key) { return !options.given.contains(key); };
  if (sized_by_trace("page")) cache.page = requests.front().block;
  std::int64_t longest = 0;
  std::int64_t chunks = 0;
  for (const TraceRequest& request : requests) {
    const Tokens length = request.input + trace_output(options, request);
    longest = std::max(longest, divide_up(length.value(), cache.page.value()));
    chunks += divide_up(request.input.value(), cache.prefill_chunk.value());
  }
  const std::int64_t distinct = divide_up(distinct_tokens(requests).value(), cache.page.value());
  const Rows pages{longest + distinct / 10};
  if (sized_by_trace("full_pages")) cache.full_pages = pages;
  if (sized_by_trace("swa_pages")) cache.swa_pages = pages;
  if (sized_by_trace("mamba_slots"))
    cache.mamba_slots = CacheConfig{}.mamba_slots + Rows{chunks / 10};
  return cache;
}

}  // namespace lockstep::sim
