#include "reports/catch_test.h"

#include "catch.h"
#include "sim/scenario_reader.h"

namespace lockstep::reports {

TEST_CASE("a scenario as a Catch2 test holds its name and its JSON, which reads as the scenario") {
  sim::Scenario scenario;
  scenario.name = "with \"quotes\"";
  const std::string source = catch_test(scenario);
  REQUIRE(source.find("TEST_CASE(\"with \\\"quotes\\\"\") {") != std::string::npos);
  const std::string opening = "R\"json(";
  const std::size_t begin = source.find(opening) + opening.size();
  const std::size_t end = source.find(")json\"");
  REQUIRE(end != std::string::npos);
  Result<sim::Scenario> read = sim::parse_scenario(source.substr(begin, end - begin), "x.json");
  REQUIRE(read.ok());
  read->model.source = scenario.model.source;
  REQUIRE(*read == scenario);
}

}  // namespace lockstep::reports
