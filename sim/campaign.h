// A campaign: many generated scenarios over several threads. What comes out depends on the options
// alone, not on the number of threads: seeds are collected in their order.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/result.h"
#include "oracle/verdict.h"
#include "sim/determinism.h"
#include "sim/features.h"
#include "sim/generate.h"
#include "sim/result.h"
#include "sim/scenario_run.h"

namespace lockstep::sim {

struct CampaignOptions {
  Profile profile = Profile::smoke;
  std::vector<std::string> models{"fingerprint"};  // seed s runs number s mod n of them
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  std::uint64_t shard = 0;  // of the seeds, those with (seed - first) mod shards == shard
  std::uint64_t shards = 1;
  std::size_t jobs = 1;
  std::uint64_t most_findings = 10;  // after which the campaign ends
  std::vector<std::string> defects;  // planted in every run
  // What a finding says of an event in which two runs of a seed differ.
  DescribeEvent describe = [](const Event& event) { return std::string(event_name(event.body)); };
  // What runs a scenario, in place of run_scenario().
  std::function<Result<RunResult>(const Scenario&, const RunOptions&)> run = run_scenario;
  std::function<bool()> time_is_up;  // asked between batches; may be null
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

// One seed that failed.
struct Finding {
  std::uint64_t seed = 0;
  Scenario scenario;  // as generated
  std::optional<oracle::Violation> first;
  std::optional<Error> refusal;           // or the world refused it
  std::optional<std::string> difference;  // or two runs differed: where
  std::string invariant() const;          // of the violation; "determinism", "refused"
};

struct CampaignSummary {
  std::uint64_t seeds = 0;
  std::uint64_t doubled = 0;  // of them, run twice and compared
  RunDigest digest;           // folds each seed and the digest of its run
  std::uint64_t events = 0;
  std::uint64_t most_events = 0;  // of one seed
  std::int64_t commits_verified = 0;
  std::int64_t tokens_verified = 0;
  std::map<std::string, std::int64_t> faults_injected;
  std::map<std::string, std::int64_t> sometimes;
  std::array<std::uint64_t, kFeatureCount> features{};
  std::array<FeatureSet, kFeatureCount> together{};  // of each feature, those that ran with it
  std::vector<Finding> findings;

  // Of all pairs of features that do not exclude each other, those that never ran together.
  std::vector<std::pair<Feature, Feature>> pairs_apart() const;
  static std::uint64_t pairs();
};

// The scenario of one seed of the campaign.
Scenario campaign_scenario(const CampaignOptions& options, std::uint64_t seed);

CampaignSummary run_campaign(const CampaignOptions& options);

}  // namespace lockstep::sim
