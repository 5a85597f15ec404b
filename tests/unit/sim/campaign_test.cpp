#include "sim/campaign.h"

#include <set>

#include "catch.h"
#include "sim/coverage.h"

namespace lockstep::sim {
namespace {

CampaignOptions small() {
  CampaignOptions options;
  options.seeds = 150;
  return options;
}

bool same(const CampaignSummary& a, const CampaignSummary& b) {
  return a.seeds == b.seeds && a.doubled == b.doubled && a.events == b.events &&
         a.commits_verified == b.commits_verified && a.tokens_verified == b.tokens_verified &&
         a.faults_injected == b.faults_injected && a.sometimes == b.sometimes &&
         a.features == b.features && a.together == b.together &&
         a.findings.size() == b.findings.size();
}

}  // namespace

TEST_CASE("a campaign's result does not depend on the number of threads") {
  CampaignOptions options = small();
  const CampaignSummary one = run_campaign(options);
  options.jobs = 3;
  const CampaignSummary three = run_campaign(options);
  REQUIRE(one.seeds == 150);
  REQUIRE(same(one, three));
}

TEST_CASE("shards are the parts of a campaign") {
  CampaignOptions options = small();
  const CampaignSummary whole = run_campaign(options);
  CampaignSummary parts;
  options.shards = 4;
  for (options.shard = 0; options.shard < 4; ++options.shard) {
    const CampaignSummary part = run_campaign(options);
    parts.seeds += part.seeds;
    parts.events += part.events;
    parts.tokens_verified += part.tokens_verified;
  }
  REQUIRE(parts.seeds == whole.seeds);
  REQUIRE(parts.events == whole.events);
  REQUIRE(parts.tokens_verified == whole.tokens_verified);
}

TEST_CASE("a campaign finds a planted defect and stops after enough findings") {
  CampaignOptions options;
  options.defects = {"commit.skip_state"};
  options.most_findings = 3;
  options.jobs = 2;
  const CampaignSummary summary = run_campaign(options);
  REQUIRE(summary.findings.size() == 3);
  REQUIRE(summary.seeds < options.seeds);
  REQUIRE(summary.seeds == summary.findings.back().seed);
  // The request goes on from what its slot held: no source, or wrong data.
  for (const Finding& finding : summary.findings) {
    REQUIRE((finding.invariant() == "B6" || finding.invariant() == "D1" ||
             finding.invariant() == "D2"));
  }
}

TEST_CASE("there are at least 40 sometimes-points, with names of their own") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kSometimesCount; ++i) names.insert(name(static_cast<Sometimes>(i)));
  REQUIRE(names.size() == kSometimesCount);
  REQUIRE(kSometimesCount >= 40);
}

}  // namespace lockstep::sim
