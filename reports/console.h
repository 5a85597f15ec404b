// What `lockstep run` shows a person: a table, then what was not as expected.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "reports/run_entry.h"

namespace lockstep::reports {

struct ConsoleStyle {
  bool colours = false;        // ANSI colours; the caller knows whether there is a terminal
  std::size_t violations = 5;  // shown per scenario; the rest are counted
  bool show_expected = false;  // violations also of scenarios that are as expected
};

std::string run_table(std::span<const RunEntry> entries, const ConsoleStyle& style);

// "B6 at step 12, 81000 ns, rank 0, request r2: expected ..., found ...".
std::string violation_line(const oracle::Violation& violation, const sim::RunResult& result);

// Rows of cells in columns as wide as their widest cell; the first row is the head. `numeric`
// columns are aligned right.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows,
                          const std::vector<bool>& numeric);

}  // namespace lockstep::reports
