#include "reports/fuzz_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/console.h"
#include "reports/result_json.h"
#include "sim/coverage.h"

namespace lockstep::reports {

namespace {

template <class Map>
Json counts_json(const Map& counts) {
  Json::Object members;
  for (const auto& [name, count] : counts) members.push_back({name, count});
  return Json(std::move(members));
}

Json finding_json(const WrittenFinding& finding) {
  return Json::Object{{"seed", finding.seed},
                      {"model", finding.model},
                      {"invariant", finding.invariant},
                      {"detail", finding.detail},
                      {"file", finding.file.empty() ? Json() : Json(finding.file)}};
}

using Points = std::map<std::string, std::int64_t>;

const Points& points_of(const FuzzReport& report) {
  return report.exhaustive ? report.exhaustive->sometimes : report.summary.sometimes;
}

std::vector<std::string> missed_points(const Points& reached) {
  std::vector<std::string> missed;
  for (std::size_t i = 0; i < sim::kSometimesCount; ++i) {
    const std::string point(name(static_cast<sim::Sometimes>(i)));
    if (!reached.contains(point)) missed.push_back(point);
  }
  return missed;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void add_points(Json::Object& json, const Points& reached) {
  json.push_back({"sometimes", counts_json(reached)});
  Json::Array missed;
  for (const std::string& point : missed_points(reached)) missed.push_back(point);
  json.push_back({"never", std::move(missed)});
}

std::string findings_text(const FuzzReport& report) {
  std::string text;
  for (const WrittenFinding& finding : report.findings) {
    text += fmt::format("{} at seed {} ({}): {}\n", finding.invariant, finding.seed, finding.model,
                        finding.detail);
    if (finding.file.empty()) continue;
    text += fmt::format("  {} steps after {} executions: lockstep run '{}'\n", finding.steps,
                        finding.executions, finding.file);
  }
  return text;
}

std::uint64_t pairs_together(const sim::CampaignSummary& summary) {
  return sim::CampaignSummary::pairs() - summary.pairs_apart().size();
}

std::string pair_text(const std::pair<sim::Feature, sim::Feature>& pair) {
  return fmt::format("{} x {}", name(pair.first), name(pair.second));
}

std::string features_text(const sim::CampaignSummary& summary) {
  std::vector<std::vector<std::string>> rows{{"feature", "seeds"}};
  for (std::size_t i = 0; i < sim::kFeatureCount; ++i) {
    rows.push_back(
        {std::string(name(static_cast<sim::Feature>(i))), std::to_string(summary.features[i])});
  }
  std::string text = "\n" + aligned_table(rows, {false, true});
  const std::uint64_t all = sim::CampaignSummary::pairs();
  text += fmt::format("\n{} of {} pairs of features ran together ({:.1f} %)\n",
                      pairs_together(summary), all, share(pairs_together(summary), all));
  for (const auto& pair : summary.pairs_apart()) text += "apart: " + pair_text(pair) + "\n";
  return text;
}

std::string exhaustive_text(const sim::ExhaustiveSummary& summary, double seconds) {
  return fmt::format(
      "{} sequences of up to 6 steps ({} more led to the same states), {} runs of up to 4 steps "
      "with "
      "a fault, {} findings\n{:.1f} s, {:.0f} events/s, {} commits verified\n",
      summary.sequences, summary.merged, summary.with_fault, summary.findings.size(), seconds,
      static_cast<double>(summary.events) / seconds, summary.commits_verified);
}

}  // namespace

std::string fuzz_text(const FuzzReport& report) {
  std::string text = findings_text(report);
  const sim::CampaignSummary& summary = report.summary;
  const double seconds = std::max(report.wall_time.count(), 1e-9);
  if (report.exhaustive) return text + exhaustive_text(*report.exhaustive, seconds);
  const auto rate = [&](auto count) { return static_cast<double>(count) / seconds; };
  text += fmt::format("{} seeds, {} run twice, {} findings, {:.1f} s\n", summary.seeds,
                      summary.doubled, report.findings.size(), seconds);
  text += fmt::format(
      "{:.0f} seeds/s, {:.0f} events/s, {:.0f} commits/s; {} commits, {} tokens verified\n",
      rate(summary.seeds), rate(summary.events), rate(summary.commits_verified),
      summary.commits_verified, summary.tokens_verified);
  return text;
}

std::string coverage_text(const FuzzReport& report) {
  const auto& reached = points_of(report);
  std::vector<std::vector<std::string>> rows{{"sometimes", "count"}};
  for (const auto& [point, count] : reached) rows.push_back({point, std::to_string(count)});
  const std::vector<std::string> missed = missed_points(reached);
  std::string text = aligned_table(rows, {false, true});
  text += fmt::format("\n{} of {} points reached\n", sim::kSometimesCount - missed.size(),
                      sim::kSometimesCount);
  for (const std::string& point : missed) text += "never: " + point + "\n";
  // All sequences of the small scope have the same few features.
  return report.exhaustive ? text : text + features_text(report.summary);
}

Json fuzz_json(const FuzzReport& report) {
  const sim::CampaignSummary& summary = report.summary;
  Json::Object json = result_envelope("fuzz", report.findings.empty());
  Json::Array seeds;
  for (const WrittenFinding& finding : report.findings) seeds.push_back(finding_json(finding));
  json.push_back({"seeds", std::move(seeds)});
  if (report.exhaustive) {
    const sim::ExhaustiveSummary& all = *report.exhaustive;
    json.push_back({"figures", Json::Object{{"sequences", all.sequences},
                                            {"merged", all.merged},
                                            {"with_fault", all.with_fault},
                                            {"events", all.events},
                                            {"commits_verified", all.commits_verified}}});
    add_points(json, all.sometimes);
    return Json(std::move(json));
  }
  json.push_back({"figures", Json::Object{{"seeds", summary.seeds},
                                          {"doubled", summary.doubled},
                                          {"events", summary.events},
                                          {"most_events", summary.most_events},
                                          {"commits_verified", summary.commits_verified},
                                          {"tokens_verified", summary.tokens_verified},
                                          {"digest", digest_text(summary.digest.value())},
                                          {"feature_pairs", pairs_together(summary)},
                                          {"all_feature_pairs", sim::CampaignSummary::pairs()}}});
  json.push_back({"faults_injected", counts_json(summary.faults_injected)});
  add_points(json, summary.sometimes);
  Json::Array apart;
  for (const auto& pair : summary.pairs_apart()) apart.push_back(pair_text(pair));
  json.push_back({"apart", std::move(apart)});
  return Json(std::move(json));
}

}  // namespace lockstep::reports
