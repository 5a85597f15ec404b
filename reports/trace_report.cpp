#include "reports/trace_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/console.h"
#include "reports/result_json.h"
#include "sim/scenario_reader.h"

namespace lockstep::reports {
namespace {

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

Json requests_json(std::span<const sim::TraceRequest> requests, const sim::RunResult& result) {
  Json::Array list;
  for (const sim::TraceRequest& request : requests) {
    const auto found = result.requests.find(request.name);
    if (found == result.requests.end()) continue;
    const sim::RequestResult& outcome = found->second;
    list.push_back(Json::Object{{"name", request.name},
                                {"outcome", outcome.outcome},
                                {"input", request.input.value()},
                                {"restored_tokens", outcome.restored_tokens.value()},
                                {"from_device", outcome.from_device.value()},
                                {"from_store", outcome.from_store.value()}});
  }
  return list;
}

}  // namespace

double TraceSummary::hit_rate() const {
  return ratio(static_cast<double>(device_hits + store_hits),
               static_cast<double>(block_references));
}

double TraceSummary::tokens_per_second() const {
  return ratio(static_cast<double>(tokens_verified), wall_time.count());
}

TraceSummary summarize_trace(std::span<const sim::TraceRequest> requests,
                             const sim::RunResult& result) {
  TraceSummary summary;
  summary.requests = std::ssize(requests);
  summary.commits_verified = result.counter("commits_verified");
  summary.tokens_verified = result.counter("tokens_verified");
  for (const sim::TraceRequest& request : requests) {
    summary.block_references += std::ssize(request.blocks);
    const auto found = result.requests.find(request.name);
    if (found == result.requests.end()) continue;
    const sim::RequestResult& outcome = found->second;
    const std::int64_t on_device = outcome.from_device / request.block;
    summary.device_hits += on_device;
    summary.store_hits += outcome.restored_tokens / request.block - on_device;
    summary.restores += outcome.from_store > Tokens{0};
    summary.not_completed += outcome.outcome != "completed";
  }
  return summary;
}

std::string trace_text(const TraceSummary& summary, const sim::RunResult& result,
                       std::size_t max_violations) {
  const std::int64_t hits = summary.device_hits + summary.store_hits;
  std::string text = fmt::format(
      "cache             page {}, {} FULL, {} SWA, {} MAMBA rows, {} running\n"
      "requests          {}{}\n"
      "block references  {}\n"
      "block hits        {} ({} device, {} store)\n"
      "hit rate          {:.2f} %\n"
      "restores          {}\n"
      "commits verified  {}\n"
      "tokens verified   {}\n"
      "wall time         {:.2f} s, {:.0f} verified tokens per second\n"
      "violations        {}\n"
      "(what a request generates never matches what the trace's next turn continues with)\n",
      summary.cache.page.value(), summary.cache.full_pages.value(), summary.cache.swa_pages.value(),
      summary.cache.mamba_slots.value(), summary.cache.max_running, summary.requests,
      summary.not_completed ? fmt::format(" ({} not completed)", summary.not_completed) : "",
      summary.block_references, hits, summary.device_hits, summary.store_hits,
      100 * summary.hit_rate(), summary.restores, summary.commits_verified, summary.tokens_verified,
      summary.wall_time.count(), summary.tokens_per_second(), result.violations.size());
  const std::size_t shown = std::min(max_violations, result.violations.size());
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  {}\n", violation_line(result.violations[i], result));
  }
  return text;
}

Json trace_json(const std::string& file, const TraceSummary& summary,
                std::span<const sim::TraceRequest> requests, const sim::RunResult& result) {
  Json::Object envelope = result_envelope("trace", result.pass());
  Json::Array violations;
  for (const auto& violation : result.violations) {
    violations.push_back(violation_json(violation, result));
  }
  envelope.push_back({"file", file});
  envelope.push_back({"digest", digest_text(result.digest)});
  envelope.push_back({"cache", sim::cache_json(summary.cache)});
  envelope.push_back({"figures", Json::Object{{"requests", summary.requests},
                                              {"not_completed", summary.not_completed},
                                              {"block_references", summary.block_references},
                                              {"device_hits", summary.device_hits},
                                              {"store_hits", summary.store_hits},
                                              {"hit_rate", summary.hit_rate()},
                                              {"restores", summary.restores},
                                              {"tokens_verified", summary.tokens_verified},
                                              {"wall_s", summary.wall_time.count()},
                                              {"tokens_per_s", summary.tokens_per_second()}}});
  envelope.push_back({"counters", counters_json(result)});
  envelope.push_back({"violations", std::move(violations)});
  envelope.push_back({"requests", requests_json(requests, result)});
  return envelope;
}

}  // namespace lockstep::reports
