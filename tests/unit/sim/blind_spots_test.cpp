// CHECKERS.md against the sources: each name that a violation can have, each checker and each field
// that the linker or a result shows is on the page, and no other name is.
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"

namespace lockstep {
namespace {

using Names = std::set<std::string>;

const std::filesystem::path kRoot{LOCKSTEP_SOURCE_DIR};

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "B10": a capital and one or two digits.
bool is_invariant(const std::string& text) {
  if (text.size() < 2 || text.size() > 3 || !std::isupper(text[0])) return false;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (!std::isdigit(text[i])) return false;
  }
  return true;
}

// Invariants that stand in quotes in the judges and in the simulator; the classes of planted
// defects look like them.
Names invariants_in_sources() {
  Names names;
  for (const char* folder : {"oracle", "sim"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / folder)) {
      if (!entry.is_regular_file() || entry.path().parent_path().filename() == "defects") continue;
      const std::string text = read(entry.path());
      for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
        const std::string quoted = text.substr(at + 1, text.find('"', at + 1) - at - 1);
        if (is_invariant(quoted)) names.insert(quoted);
      }
    }
  }
  return names;
}

// The cells of every table row of the page, without the white space around them.
std::vector<std::vector<std::string>> rows_of_page() {
  std::vector<std::vector<std::string>> rows;
  std::istringstream page(read(kRoot / "CHECKERS.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    std::istringstream parts(line.substr(1));
    for (std::string cell; std::getline(parts, cell, '|');) {
      const std::size_t begin = cell.find_first_not_of(' ');
      if (begin == std::string::npos) continue;
      cells.push_back(cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin));
    }
    rows.push_back(cells);
  }
  return rows;
}

// First cells that are names of invariants, from rows that say something in each cell.
Names invariants_on_page() {
  Names names;
  for (const auto& cells : rows_of_page()) {
    if (cells.size() == 3 && is_invariant(cells[0])) names.insert(cells[0]);
  }
  return names;
}

Names fields_on_page(const std::string& structure) {
  Names names;
  for (const auto& cells : rows_of_page()) {
    if (cells.size() == 3 && cells[0] == structure) names.insert(cells[1]);
  }
  return names;
}

// Members of a plain struct: the last word of each declaration before " = ", "{" or ";".
Names fields_in_source(const std::string& header, const std::string& structure) {
  const std::string text = read(kRoot / header);
  const std::string opening = "\nstruct " + structure + " {\n";
  const std::size_t begin = text.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = text.find("\n};", begin);
  std::istringstream body(text.substr(begin + opening.size(), end - begin - opening.size()));
  Names names;
  for (std::string line; std::getline(body, line);) {
    line = line.substr(0, line.find("//"));
    if (line.find(';') == std::string::npos) continue;
    std::string declaration = line.substr(0, line.find_first_of("={;"));
    declaration.erase(declaration.find_last_not_of(' ') + 1);
    names.insert(declaration.substr(declaration.find_last_of(" >") + 1));
  }
  return names;
}

}  // namespace

TEST_CASE("every invariant has its blind spots on the page, and the page names no other") {
  const Names in_sources = invariants_in_sources();
  REQUIRE(in_sources.contains("B1"));
  REQUIRE(in_sources.contains("H1"));
  REQUIRE(invariants_on_page() == in_sources);
}

TEST_CASE("every checker opens with what it does not verify") {
  std::vector<std::filesystem::path> headers{kRoot / "sim/race_detector.h",
                                             kRoot / "sim/access_check.h", kRoot / "sim/coverage.h",
                                             kRoot / "oracle/rank_audit.h"};
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "oracle")) {
    if (entry.path().string().ends_with("_checks.h")) headers.push_back(entry.path());
  }
  REQUIRE(headers.size() >= 12);
  for (const std::filesystem::path& header : headers) {
    const std::string text = read(header);
    const std::string opening = text.substr(0, text.find("#pragma once"));
    INFO(header);
    REQUIRE(opening.find("Verified") != std::string::npos);
    REQUIRE(opening.find("ot verified") != std::string::npos);
  }
}

TEST_CASE("every field that the linker or a result shows is compared or says why not") {
  for (const auto& [header, structure] : {std::pair("src/core/inspect.h", "NodeView"),
                                          std::pair("src/core/inspect.h", "RequestRowsView"),
                                          std::pair("src/core/inspect.h", "TransferRowsView"),
                                          std::pair("sim/result.h", "RequestResult")}) {
    INFO(structure);
    const Names fields = fields_in_source(header, structure);
    REQUIRE(fields.size() >= 4);
    const Names on_page = fields_on_page(structure);
    for (const std::string& field : fields) {
      INFO(field);
      REQUIRE(on_page.contains(field));
    }
  }
}

}  // namespace lockstep
