#include "reports/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace lockstep::reports {
namespace {

constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string coloured(std::string text, bool good, const ConsoleStyle& style) {
  if (!style.colours) return text;
  return std::string(good ? kGreen : kRed) + text + std::string(kPlain);
}

// Characters on the screen: bytes that start no UTF-8 character and colour codes take no room.
std::size_t width(std::string_view cell) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    if (cell[i] == '\x1b') {
      i = cell.find('m', i);
      continue;
    }
    columns += (static_cast<unsigned char>(cell[i]) & 0xc0) != 0x80;
  }
  return columns;
}

std::int64_t restored(const sim::RunResult& result) {
  std::int64_t total = 0;
  for (const auto& [name, request] : result.requests) total += request.restored_tokens.value();
  return total;
}

// The violated invariants with how often: "B6 D1x3".
std::string violated(const sim::RunResult& result) {
  std::map<std::string, std::size_t> counts;
  for (const oracle::Violation& violation : result.violations) ++counts[violation.invariant];
  std::string text;
  for (const auto& [invariant, count] : counts) {
    text += (text.empty() ? "" : " ") + invariant;
    if (count > 1) text += "x" + std::to_string(count);
  }
  return text.empty() ? "-" : text;
}

std::vector<std::string> table_row(const RunEntry& entry, const ConsoleStyle& style) {
  const std::string expected = coloured(entry.as_expected ? "yes" : "NO", entry.as_expected, style);
  if (entry.refusal) return {entry.name, entry.verdict(), expected, "-", "-", "-", "-"};
  return {entry.name,
          entry.verdict(),
          expected,
          std::to_string(entry.result.counter("commits_verified")),
          std::to_string(entry.result.counter("rows_compared")),
          std::to_string(restored(entry.result)),
          violated(entry.result)};
}

std::string details(const RunEntry& entry, const ConsoleStyle& style) {
  const auto& violations = entry.result.violations;
  const bool quiet = entry.as_expected && !(style.show_expected && !violations.empty());
  if (quiet) return {};
  std::string text = fmt::format("\n{} ({})\n", entry.name, entry.file);
  if (entry.refusal) return text + fmt::format("  could not be run: {}\n", entry.refusal->message);
  for (const std::string& sentence : entry.result.unexpected)
    text += fmt::format("  {}\n", sentence);
  const std::size_t shown = std::min(style.violations, violations.size());
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  {}\n", violation_line(violations[i], entry.result));
  }
  if (shown < violations.size()) {
    text += fmt::format("  and {} more violations\n", violations.size() - shown);
  }
  return text + fmt::format("  replay: lockstep run '{}' --seed {}\n", entry.file, entry.seed);
}

std::string summary(std::span<const RunEntry> entries, const ConsoleStyle& style) {
  const auto good = std::count_if(entries.begin(), entries.end(),
                                  [](const RunEntry& entry) { return entry.as_expected; });
  std::int64_t commits = 0;
  for (const RunEntry& entry : entries) commits += entry.result.counter("commits_verified");
  return "\n" +
         coloured(fmt::format("{} of {} scenarios as expected, {} commits verified", good,
                              entries.size(), commits),
                  all_as_expected(entries), style) +
         "\n";
}

}  // namespace

std::string run_table(std::span<const RunEntry> entries, const ConsoleStyle& style) {
  std::vector<std::vector<std::string>> rows{
      {"scenario", "verdict", "as expected", "commits", "rows", "restored tokens", "violations"}};
  std::string all_details;
  for (const RunEntry& entry : entries) {
    rows.push_back(table_row(entry, style));
    all_details += details(entry, style);
  }
  const std::vector<bool> numeric{false, false, false, true, true, true, false};
  return aligned_table(rows, numeric) + all_details + summary(entries, style);
}

std::string violation_line(const oracle::Violation& violation, const sim::RunResult& result) {
  std::string line =
      fmt::format("{} at step {}, {} ns, rank {}", violation.invariant, violation.step.value(),
                  violation.time.value(), violation.rank.value());
  if (violation.request != kNoRequest) {
    const auto name = result.request_names.find(violation.request);
    const bool named = name != result.request_names.end();
    line += ", request " + (named ? name->second : std::to_string(violation.request.value()));
  }
  if (violation.layer) line += fmt::format(", layer {}", violation.layer->value());
  if (violation.row) line += fmt::format(", row {}", violation.row->value());
  if (violation.token) line += fmt::format(", token {}", violation.token->value());
  return line + fmt::format(": expected {}, found {}", violation.expected, violation.actual);
}

std::string aligned_table(const std::vector<std::vector<std::string>>& rows,
                          const std::vector<bool>& numeric) {
  std::vector<std::size_t> widths(numeric.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += numeric[i] ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace lockstep::reports
