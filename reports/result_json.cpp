#include "reports/result_json.h"

#include <fmt/format.h>

namespace lockstep::reports {
namespace {

Json number_or_null(const std::optional<double>& value) {
  if (!value) return nullptr;
  return *value;
}

Json numbers_by_name(const std::map<std::string, std::int64_t>& numbers) {
  Json::Object members;
  for (const auto& [name, number] : numbers) members.push_back({name, number});
  return members;
}

Json texts(const std::vector<std::string>& list) {
  Json::Array items;
  for (const std::string& text : list) items.push_back(text);
  return items;
}

Json request_json(const sim::RequestResult& request) {
  const oracle::RequestComparison& comparison = request.comparison;
  return Json::Object{
      {"outcome", request.outcome},
      {"restored_tokens", request.restored_tokens.value()},
      {"from_device", request.from_device.value()},
      {"from_store", request.from_store.value()},
      {"recomputed", request.recomputed},
      {"loaded_rows", numbers_by_name(request.loaded_rows)},
      {"logprobs_compared", comparison.logprobs_compared},
      {"differing_logprobs", comparison.differing_logprobs},
      {"kl_mean", number_or_null(comparison.kl_mean)},
      {"kl_max", number_or_null(comparison.kl_max)},
      {"kl_reference_mean", number_or_null(comparison.kl_reference_mean)},
      {"kl_reference_max", number_or_null(comparison.kl_reference_max)},
      {"k3_mean", number_or_null(comparison.k3_mean)},
      {"max_abs_dlogprob", number_or_null(comparison.max_abs_dlogprob)},
      {"load_wait_ns", request.load_wait.value()},
      {"forward_start_ns", request.forward_start.value()},
      {"ttft_ns", request.ttft.value()},
  };
}

Json entry_json(const RunEntry& entry) {
  Json::Object members{{"name", entry.name},
                       {"file", entry.file},
                       {"verdict", entry.verdict()},
                       {"as_expected", entry.as_expected},
                       {"seed", entry.seed}};
  if (entry.refusal) {
    members.push_back({"error", entry.refusal->message});
    return members;
  }
  const sim::RunResult& result = entry.result;
  Json::Array violations;
  for (const auto& violation : result.violations) {
    violations.push_back(violation_json(violation, result));
  }
  Json::Object requests;
  for (const auto& [name, request] : result.requests) {
    requests.push_back({name, request_json(request)});
  }
  members.push_back({"backend", result.backend});
  members.push_back({"digest", digest_text(result.digest)});
  members.push_back({"outputs_digest", digest_text(result.outputs_digest)});
  members.push_back({"events", result.events});
  members.push_back({"counters", counters_json(result)});
  members.push_back({"violations", std::move(violations)});
  members.push_back({"unexpected", texts(result.unexpected)});
  members.push_back({"requests", std::move(requests)});
  return members;
}

}  // namespace

Json::Object result_envelope(std::string_view command, bool ok) {
  return {{"version", 1}, {"tool", "lockstep 0.1"}, {"command", command}, {"ok", ok}};
}

Json run_json(std::span<const RunEntry> entries) {
  Json::Object envelope = result_envelope("run", all_as_expected(entries));
  Json::Array scenarios;
  for (const RunEntry& entry : entries) scenarios.push_back(entry_json(entry));
  envelope.push_back({"scenarios", std::move(scenarios)});
  return envelope;
}

Json violation_json(const oracle::Violation& violation, const sim::RunResult& result) {
  Json::Object members{{"invariant", violation.invariant},
                       {"step", violation.step.value()},
                       {"time_ns", violation.time.value()},
                       {"rank", violation.rank.value()}};
  if (violation.request != kNoRequest) {
    const auto name = result.request_names.find(violation.request);
    const bool named = name != result.request_names.end();
    members.push_back({"request", named ? Json(name->second) : Json(violation.request.value())});
  }
  if (violation.layer) members.push_back({"layer", violation.layer->value()});
  if (violation.row) members.push_back({"row", violation.row->value()});
  if (violation.token) members.push_back({"token", violation.token->value()});
  members.push_back({"expected", violation.expected});
  members.push_back({"actual", violation.actual});
  return members;
}

Json counters_json(const sim::RunResult& result) {
  Json json = numbers_by_name(result.counters);
  auto& members = std::get<Json::Object>(json.value);
  members.push_back({"faults_injected", numbers_by_name(result.faults_injected)});
  members.push_back({"sometimes", numbers_by_name(result.sometimes)});
  return json;
}

std::string digest_text(std::uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

}  // namespace lockstep::reports
