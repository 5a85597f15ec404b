#include "reports/defects_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/console.h"
#include "reports/result_json.h"

namespace lockstep::reports {

namespace {

using sim::DefectOutcome;
using sim::KillMatrix;

std::string or_never(const std::optional<std::uint64_t>& seeds) {
  return seeds ? std::to_string(*seeds) : "never";
}

std::string seen_text(const DefectOutcome& outcome) {
  std::string text;
  for (const auto& [invariant, seeds] : outcome.seen) {
    text += (text.empty() ? "" : " ") + invariant;
  }
  return text;
}

// Defects that only this detector reports.
std::vector<std::string> missed_without(const KillMatrix& matrix, std::string_view detector) {
  std::vector<std::string> missed;
  for (const DefectOutcome& outcome : matrix.outcomes) {
    if (outcome.detections > 0 && !outcome.seen_without(detector)) {
      missed.emplace_back(outcome.defect.id);
    }
  }
  return missed;
}

// Defects whose runs some invariant of this detector reported.
std::size_t seen_by(const KillMatrix& matrix, std::string_view detector) {
  return static_cast<std::size_t>(std::ranges::count_if(matrix.outcomes, [&](const auto& outcome) {
    return std::ranges::any_of(
        outcome.seen, [&](const auto& entry) { return sim::detector_of(entry.first) == detector; });
  }));
}

std::size_t seen_by_kl(const KillMatrix& matrix) {
  return static_cast<std::size_t>(std::ranges::count_if(matrix.outcomes, &DefectOutcome::kl_sees));
}

std::string detector_table(const KillMatrix& matrix) {
  std::vector<std::vector<std::string>> rows{{"detector", "sees", "alone", "missed without it"}};
  for (std::string_view detector : sim::detectors()) {
    const std::vector<std::string> missed = missed_without(matrix, detector);
    rows.push_back({std::string(detector), std::to_string(seen_by(matrix, detector)),
                    std::to_string(missed.size()), fmt::format("{}", fmt::join(missed, " "))});
  }
  return aligned_table(rows, {false, true, true, false});
}

Json defect_json(const sim::Defect& defect) {
  return Json::Object{
      {"id", std::string(defect.id)},           {"phase", std::string(defect.phase())},
      {"classes", std::string(defect.classes)}, {"required", std::string(defect.required)},
      {"also", std::string(defect.also)},       {"wrong", std::string(defect.wrong)}};
}

Json number_or_null(const std::optional<std::uint64_t>& number) {
  return number ? Json(*number) : Json();
}

Json outcome_json(const DefectOutcome& outcome) {
  Json::Object seen;
  for (const auto& [invariant, seeds] : outcome.seen) seen.push_back({invariant, seeds});
  return Json::Object{{"id", std::string(outcome.defect.id)},
                      {"detected", outcome.detections > 0},
                      {"by", outcome.by},
                      {"seeds_needed", number_or_null(outcome.seeds_needed)},
                      {"required", std::string(outcome.defect.required)},
                      {"required_fired", outcome.required_fired()},
                      {"required_after", number_or_null(outcome.required_after)},
                      {"seeds_run", outcome.seeds_run},
                      {"detections", outcome.detections},
                      {"seen", std::move(seen)},
                      {"kl_sees", outcome.kl_sees}};
}

}  // namespace

std::string defect_list_text(std::span<const sim::Defect> defects) {
  std::vector<std::vector<std::string>> rows{
      {"defect", "phase", "class", "required", "also", "what is wrong"}};
  for (const sim::Defect& defect : defects) {
    rows.push_back({std::string(defect.id), std::string(defect.phase()),
                    std::string(defect.classes), std::string(defect.required),
                    std::string(defect.also), std::string(defect.wrong)});
  }
  return aligned_table(rows, {false, false, false, false, false, false});
}

Json defect_list_json(std::span<const sim::Defect> defects) {
  Json::Object json = result_envelope("defects", true);
  Json::Array list;
  for (const sim::Defect& defect : defects) list.push_back(defect_json(defect));
  json.push_back({"defects", std::move(list)});
  return Json(std::move(json));
}

std::string kill_matrix_text(const KillMatrix& matrix) {
  std::vector<std::vector<std::string>> rows{
      {"defect", "required", "after seeds", "first seen by", "after", "KL alone", "seen by"}};
  for (const DefectOutcome& outcome : matrix.outcomes) {
    rows.push_back({std::string(outcome.defect.id), std::string(outcome.defect.required),
                    or_never(outcome.required_after), outcome.by, or_never(outcome.seeds_needed),
                    outcome.kl_sees ? "yes" : "no", seen_text(outcome)});
  }
  std::string text = aligned_table(rows, {false, false, true, false, true, false, false});
  text += "\n" + detector_table(matrix);
  const auto reported = std::ranges::count_if(matrix.outcomes, &DefectOutcome::required_fired);
  text += fmt::format(
      "\n{} of {} defects reported by the required invariant, after {} seeds in the median and {} "
      "at the worst\na mean KL below 1e-9 alone would have caught {}\n",
      reported, matrix.outcomes.size(), matrix.median_seeds(), matrix.worst_seeds(),
      seen_by_kl(matrix));
  text +=
      fmt::format("without a defect: {} seeds, {}{} reports\n", matrix.clean_seeds,
                  matrix.false_alarms.size() < 10 ? "" : "at least ", matrix.false_alarms.size());
  for (const sim::FalseAlarm& alarm : matrix.false_alarms) {
    text += fmt::format("  {} at seed {}\n", alarm.invariant, alarm.seed);
  }
  return text;
}

Json kill_matrix_json(const KillMatrix& matrix) {
  Json::Object json = result_envelope("defects", matrix.good());
  Json::Array outcomes;
  for (const DefectOutcome& outcome : matrix.outcomes) outcomes.push_back(outcome_json(outcome));
  json.push_back({"defects", std::move(outcomes)});
  Json::Array detectors;
  for (std::string_view detector : sim::detectors()) {
    Json::Array missed;
    for (const std::string& id : missed_without(matrix, detector)) missed.push_back(id);
    detectors.push_back(Json::Object{{"name", std::string(detector)},
                                     {"sees", std::uint64_t{seen_by(matrix, detector)}},
                                     {"missed_without", std::move(missed)}});
  }
  json.push_back({"detectors", std::move(detectors)});
  Json::Array alarms;
  for (const sim::FalseAlarm& alarm : matrix.false_alarms) {
    alarms.push_back(Json::Object{{"seed", alarm.seed}, {"invariant", alarm.invariant}});
  }
  json.push_back({"figures", Json::Object{{"median_seeds", matrix.median_seeds()},
                                          {"worst_seeds", matrix.worst_seeds()},
                                          {"kl_alone", std::uint64_t{seen_by_kl(matrix)}},
                                          {"clean_seeds", matrix.clean_seeds},
                                          {"false_alarms", std::move(alarms)}}});
  return Json(std::move(json));
}

}  // namespace lockstep::reports
