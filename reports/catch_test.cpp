#include "reports/catch_test.h"

#include <fmt/format.h>

#include "core/json.h"
#include "sim/scenario_reader.h"

namespace lockstep::reports {

namespace {

// In lines, so that it reads as the file does; no JSON text can hold the delimiter's quote
// unescaped.
std::string raw_literal(const std::string& text) {
  return "R\"json(" + text + ")json\"";
}

// As a C++ string literal: JSON's escapes are C++'s, too, but for '/', which JSON need not escape.
std::string literal(const std::string& text) {
  return to_text(Json(text));
}

}  // namespace

std::string catch_test(const sim::Scenario& scenario) {
  return fmt::format(R"(#include "catch.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_run.h"

TEST_CASE({}) {{
  const auto scenario = lockstep::sim::parse_scenario({}, "embedded");
  REQUIRE(scenario.ok());
  const auto result = lockstep::sim::run_scenario(*scenario, {{}});
  REQUIRE(result.ok());
  // What the scenario expects and the run did not do, one sentence each.
  REQUIRE(result->unexpected == std::vector<std::string>{{}});
}}
)",
                     literal(scenario.name), raw_literal(sim::write_scenario(scenario)));
}

}  // namespace lockstep::reports
