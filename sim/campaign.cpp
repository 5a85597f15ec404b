#include "sim/campaign.h"

#include <algorithm>

#include "sim/parallel.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {

namespace {

// Each of so many seeds is run twice.
constexpr std::uint64_t kDoubledEvery = 16;
// Seeds of a batch, per thread: long enough to keep all threads busy, short enough to stop in time.
constexpr std::size_t kBatchPerJob = 64;

struct SeedOutcome {
  FeatureSet features;
  RunResult result;
  bool doubled = false;
  std::optional<Finding> finding;
};

SeedOutcome run_seed(const CampaignOptions& options, std::uint64_t seed) {
  SeedOutcome outcome;
  const Scenario scenario = campaign_scenario(options, seed);
  outcome.features = features_of(scenario);
  RunOptions run;
  run.stop_at_first = true;
  Result<RunResult> result = run_scenario(scenario, run);
  if (!result) {
    outcome.finding = Finding{seed, scenario, {}, result.error()};
    return outcome;
  }
  outcome.result = std::move(result).value();
  if (!outcome.result.pass()) {
    outcome.finding = Finding{seed, scenario, outcome.result.violations.front(), {}};
    return outcome;
  }
  outcome.doubled = seed % kDoubledEvery == 0;
  if (!outcome.doubled) return outcome;
  const Result<RunResult> second = run_scenario(scenario, run);
  if (!second || second->digest != outcome.result.digest) {
    outcome.finding = Finding{seed, scenario, {}, {}};
  }
  return outcome;
}

void merge(SeedOutcome outcome, CampaignSummary& summary) {
  ++summary.seeds;
  summary.doubled += outcome.doubled ? 1 : 0;
  summary.events += outcome.result.events;
  summary.commits_verified += outcome.result.counters["commits_verified"];
  summary.tokens_verified += outcome.result.counters["tokens_verified"];
  for (const auto& [action, times] : outcome.result.faults_injected) {
    summary.faults_injected[action] += times;
  }
  for (const auto& [point, times] : outcome.result.sometimes) summary.sometimes[point] += times;
  for (std::size_t i = 0; i < kFeatureCount; ++i) {
    if (!outcome.features.test(i)) continue;
    ++summary.features[i];
    summary.together[i] |= outcome.features;
  }
  if (outcome.finding) summary.findings.push_back(*std::move(outcome.finding));
}

std::vector<SeedOutcome> run_batch(const CampaignOptions& options,
                                   const std::vector<std::uint64_t>& seeds) {
  std::vector<SeedOutcome> outcomes(seeds.size());
  for_each_parallel(seeds.size(), options.jobs,
                    [&](std::size_t i) { outcomes[i] = run_seed(options, seeds[i]); });
  return outcomes;
}

}  // namespace

std::string Finding::invariant() const {
  if (refusal) return "refused";
  return first ? first->invariant : "determinism";
}

std::uint64_t CampaignSummary::pairs_together() const {
  std::uint64_t ordered = 0;
  for (std::size_t i = 0; i < kFeatureCount; ++i) {
    FeatureSet others = together[i];
    others.reset(i);
    ordered += others.count();
  }
  return ordered / 2;
}

Scenario campaign_scenario(const CampaignOptions& options, std::uint64_t seed) {
  const std::string& preset = options.models[seed % options.models.size()];
  Scenario scenario = generate({options.profile, preset}, seed);
  scenario.defects = options.defects;
  return scenario;
}

CampaignSummary run_campaign(const CampaignOptions& options) {
  CampaignSummary summary;
  const std::uint64_t total = (options.seeds + options.shards - 1 - options.shard) / options.shards;
  std::uint64_t next = options.first + options.shard;
  while (summary.seeds < total) {
    std::vector<std::uint64_t> batch;
    const std::uint64_t size =
        std::min<std::uint64_t>(total - summary.seeds, kBatchPerJob * options.jobs);
    for (std::uint64_t i = 0; i < size; ++i, next += options.shards) batch.push_back(next);
    for (SeedOutcome& outcome : run_batch(options, batch)) {
      merge(std::move(outcome), summary);
      if (summary.findings.size() >= options.most_findings) return summary;
    }
    if (options.progress) options.progress(summary.seeds, total);
    if (options.time_is_up && options.time_is_up()) return summary;
  }
  return summary;
}

}  // namespace lockstep::sim
