#include "sim/campaign.h"

#include <map>
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
         a.digest.value() == b.digest.value() && a.findings.size() == b.findings.size();
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

TEST_CASE("another seed gives a campaign another digest") {
  CampaignOptions options;
  options.seeds = 2;
  const CampaignSummary first = run_campaign(options);
  options.first = 2;
  REQUIRE(first.digest.value() != run_campaign(options).digest.value());
}

TEST_CASE("a run that differs from the first one is a finding that names the first event") {
  std::map<std::string, int> runs;
  CampaignOptions options;
  options.first = 32;  // is run twice
  options.seeds = 1;
  options.describe = [](const Event& event) {
    return std::string(event_name(event.body)) + " of request " +
           std::to_string(event.request.value());
  };
  // The second run has a request more than the others, at its very end.
  options.run = [&](const Scenario& scenario, const RunOptions& run) {
    Scenario changed = scenario;
    if (++runs[scenario.name] == 2) {
      SubmitStep more;
      more.request = "more";
      more.prompt = scenario.prompts.begin()->first;
      more.decode = Tokens{1};
      changed.steps.emplace_back(more);
    }
    return run_scenario(changed, run);
  };
  const CampaignSummary summary = run_campaign(options);
  REQUIRE(summary.findings.size() == 1);
  REQUIRE(summary.findings.front().invariant() == "determinism");
  const Scenario scenario = campaign_scenario(options, 32);
  const Result<RunResult> undisturbed = run_scenario(scenario, {});
  const std::string place =
      "event " + std::to_string(undisturbed->events + 1) + " on: expected no more events";
  INFO(*summary.findings.front().difference);
  REQUIRE(summary.findings.front().difference->find(place) != std::string::npos);
  REQUIRE(summary.findings.front().difference->find("found request_submitted of request ") !=
          std::string::npos);
}

TEST_CASE("of two events that differ, both are named") {
  CampaignOptions options;
  options.first = 32;
  options.seeds = 1;
  int runs = 0;
  // The clock runs differently, once: events have other times, and the first that has is found.
  options.run = [&](const Scenario& scenario, const RunOptions& run) {
    Scenario changed = scenario;
    if (++runs == 2) changed.store.latency_us += 1;
    return run_scenario(changed, run);
  };
  options.describe = [](const Event& event) { return std::to_string(event.time.value()) + " ns"; };
  const CampaignSummary summary = run_campaign(options);
  REQUIRE(runs == 3);
  REQUIRE(summary.findings.size() == 1);
  const std::string difference = *summary.findings.front().difference;
  INFO(difference);
  const std::size_t expected = difference.find("expected ");
  const std::size_t found = difference.find(" ns, found ");
  REQUIRE(expected != std::string::npos);
  REQUIRE(found != std::string::npos);
  // What the store answers comes 1,000 ns later.
  const auto number = [&](std::size_t at) { return std::stoll(difference.substr(at)); };
  REQUIRE(number(found + 11) - number(expected + 9) == 1000);
}

TEST_CASE("features that exclude each other never run together, and are no pairs") {
  CampaignOptions options = small();
  const CampaignSummary summary = run_campaign(options);
  std::uint64_t exclusive = 0;
  for (std::size_t i = 0; i < kFeatureCount; ++i) {
    for (std::size_t j = i + 1; j < kFeatureCount; ++j) {
      if (!exclude_each_other(static_cast<Feature>(i), static_cast<Feature>(j))) continue;
      ++exclusive;
      REQUIRE_FALSE(summary.together[i].test(j));
    }
  }
  REQUIRE(exclusive > 0);
  REQUIRE(CampaignSummary::pairs() == kFeatureCount * (kFeatureCount - 1) / 2 - exclusive);
}

TEST_CASE("there are at least 40 sometimes-points, with names of their own") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kSometimesCount; ++i) names.insert(name(static_cast<Sometimes>(i)));
  REQUIRE(names.size() == kSometimesCount);
  REQUIRE(kSometimesCount >= 40);
}

}  // namespace lockstep::sim
