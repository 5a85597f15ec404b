#include "sim/campaign.h"

#include <algorithm>

#include "sim/parallel.h"

namespace lockstep::sim {

namespace {

// Each of so many seeds is run twice.
constexpr std::uint64_t kDoubledEvery = 16;
// Seeds of a batch, per thread: long enough to keep all threads busy, short enough to stop in time.
constexpr std::size_t kBatchPerJob = 64;

struct SeedOutcome {
  std::uint64_t seed = 0;
  FeatureSet features;
  RunResult result;
  bool doubled = false;
  std::optional<Finding> finding;
};

SeedOutcome run_seed(const CampaignOptions& options, std::uint64_t seed) {
  SeedOutcome outcome;
  outcome.seed = seed;
  const Scenario scenario = campaign_scenario(options, seed);
  outcome.features = features_of(scenario);
  outcome.doubled = seed % kDoubledEvery == 0;
  const auto run = [&](Observer* observer) {
    RunOptions run_options;
    run_options.stop_at_first = true;
    run_options.most_events = kEndlessEvents;
    run_options.observer = observer;
    return options.run(scenario, run_options);
  };
  EventRecorder recorder;
  Result<RunResult> result = run(outcome.doubled ? &recorder : nullptr);
  if (!result) {
    outcome.finding = Finding{seed, scenario, {}, result.error(), {}};
    return outcome;
  }
  outcome.result = std::move(result).value();
  if (!outcome.result.pass()) {
    outcome.finding = Finding{seed, scenario, outcome.result.violations.front(), {}, {}};
  } else if (outcome.doubled) {
    auto difference = find_difference(outcome.result, recorder, run, options.describe);
    if (difference) outcome.finding = Finding{seed, scenario, {}, {}, std::move(difference)};
  }
  return outcome;
}

void merge(SeedOutcome outcome, CampaignSummary& summary) {
  ++summary.seeds;
  summary.doubled += outcome.doubled ? 1 : 0;
  summary.digest.fold(outcome.seed);
  summary.digest.fold(outcome.result.digest);
  summary.events += outcome.result.events;
  summary.most_events = std::max(summary.most_events, outcome.result.events);
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

template <class Visit>
void for_each_pair(const Visit& visit) {
  for (std::size_t i = 0; i < kFeatureCount; ++i) {
    for (std::size_t j = i + 1; j < kFeatureCount; ++j) {
      const auto one = static_cast<Feature>(i);
      const auto other = static_cast<Feature>(j);
      if (!exclude_each_other(one, other)) visit(one, other);
    }
  }
}

}  // namespace

std::string Finding::invariant() const {
  if (refusal) return "refused";
  return first ? first->invariant : "determinism";
}

std::vector<std::pair<Feature, Feature>> CampaignSummary::pairs_apart() const {
  std::vector<std::pair<Feature, Feature>> apart;
  for_each_pair([&](Feature one, Feature other) {
    if (!has(together[static_cast<std::size_t>(one)], other)) apart.emplace_back(one, other);
  });
  return apart;
}

std::uint64_t CampaignSummary::pairs() {
  std::uint64_t count = 0;
  for_each_pair([&](Feature, Feature) { ++count; });
  return count;
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
