#include <algorithm>
#include <set>

#include "catch.h"
#include "core/json.h"
#include "sim/defects/registry.h"
#include "sim/scenario_reader.h"

namespace lockstep::sim {
namespace {

constexpr std::size_t kMostSteps = 10;

std::string text_of(const std::string& file) {
  const auto text =
      read_text_file(std::string(LOCKSTEP_SOURCE_DIR "/") + file, std::size_t{1} << 24);
  REQUIRE(text.ok());
  return *text;
}

Scenario control_of(const Defect& defect) {
  const auto scenario = read_scenario_file(LOCKSTEP_SOURCE_DIR "/scenarios/controls/" +
                                           std::string(defect.id) + ".json");
  REQUIRE(scenario.ok());
  return *scenario;
}

TEST_CASE("each planted defect has an id of its own, and can be made") {
  std::set<std::string_view> ids;
  for (const Defect& defect : all_defects()) {
    CAPTURE(defect.id);
    REQUIRE(ids.insert(defect.id).second);
    REQUIRE_FALSE(defect.required.empty());
    REQUIRE(make_parts(std::vector{std::string(defect.id)}).ok());
  }
}

TEST_CASE("each planted defect has a short control scenario that expects its invariant") {
  for (const Defect& defect : all_defects()) {
    CAPTURE(defect.id);
    const Scenario control = control_of(defect);
    REQUIRE(control.defects == std::vector{std::string(defect.id)});
    REQUIRE(control.steps.size() <= kMostSteps);
    REQUIRE(control.expect.has_value());
    REQUIRE(control.expect->violations_at_least.has_value());
    const auto& expected = *control.expect->violations_at_least;
    REQUIRE(std::ranges::find(expected, defect.required) != expected.end());
  }
}

TEST_CASE("ARCHITECTURE.md names the seam of each planted defect") {
  const std::string text = text_of("ARCHITECTURE.md");
  for (const Defect& defect : all_defects()) {
    CAPTURE(defect.id);
    REQUIRE(text.find(" " + std::string(defect.id)) != std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::sim
