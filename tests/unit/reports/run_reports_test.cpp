// The three forms of a run's results: JSON, JUnit, console.
#include <limits>

#include "catch.h"
#include "reports/console.h"
#include "reports/junit.h"
#include "reports/result_json.h"

namespace lockstep::reports {
namespace {

RunEntry good_entry() {
  RunEntry entry;
  entry.name = "restore-after-flush";
  entry.file = "scenarios/upstream/restore-after-flush.json";
  entry.seed = 1;
  entry.as_expected = true;
  entry.wall_time = std::chrono::milliseconds(1500);
  sim::RequestResult request;
  request.outcome = "completed";
  request.restored_tokens = Tokens{1152};
  request.from_store = Tokens{1152};
  request.loaded_rows = {{"full", 9}, {"swa", 4}, {"mamba", 1}};
  request.comparison.kl_max = std::numeric_limits<double>::infinity();
  request.comparison.kl_mean = 0.25;
  entry.result.digest = 0x9f3c;
  entry.result.counters = {{"commits_verified", 6}, {"rows_compared", 40}};
  entry.result.sometimes = {{"mamba_exist at commit", 2}};
  entry.result.requests["r2"] = request;
  entry.result.request_names[RequestId{1}] = "r2";
  return entry;
}

RunEntry bad_entry() {
  RunEntry entry = good_entry();
  entry.name = "a <bad> one";
  entry.as_expected = false;
  oracle::Violation violation;
  violation.invariant = "B6";
  violation.step = StepId{12};
  violation.time = Nanoseconds{81000};
  violation.request = RequestId{1};
  violation.expected = "slot 3";
  violation.actual = "slot \"4\" & more";
  entry.result.violations.push_back(violation);
  violation.invariant = "D1";
  violation.request = kNoRequest;
  violation.layer = LayerId{2};
  violation.row = Row{7};
  violation.token = Tokens{640};
  entry.result.violations.push_back(violation);
  entry.result.unexpected = {"verdict: expected pass, found fail"};
  return entry;
}

RunEntry refused_entry() {
  RunEntry entry;
  entry.name = "refused";
  entry.file = "x.json";
  entry.refusal = Error{"x.json: full pool: zero-size"};
  return entry;
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the result file has the envelope and the fields of the format") {
  const std::vector<RunEntry> entries{good_entry(), bad_entry(), refused_entry()};
  const Result<Json> json = parse_json(to_pretty_text(run_json(entries)), "result");
  REQUIRE(json.ok());
  REQUIRE(to_text(*json->find("version")) == "1");
  REQUIRE(to_text(*json->find("tool")) == "\"lockstep 0.1\"");
  REQUIRE(to_text(*json->find("command")) == "\"run\"");
  REQUIRE(to_text(*json->find("ok")) == "false");
  const auto& scenarios = *json->find("scenarios")->as<Json::Array>();
  REQUIRE(scenarios.size() == 3);

  const Json& good = scenarios[0];
  REQUIRE(to_text(*good.find("verdict")) == "\"pass\"");
  REQUIRE(to_text(*good.find("as_expected")) == "true");
  REQUIRE(to_text(*good.find("digest")) == "\"0000000000009f3c\"");
  REQUIRE(to_text(*good.find("backend")) == "\"host\"");
  const Json& counters = *good.find("counters");
  REQUIRE(to_text(*counters.find("commits_verified")) == "6");
  REQUIRE(to_text(*counters.find("faults_injected")) == "{}");
  REQUIRE(to_text(*counters.find("sometimes")) == R"({"mamba_exist at commit": 2})");
  const Json& request = *good.find("requests")->find("r2");
  REQUIRE(to_text(*request.find("restored_tokens")) == "1152");
  REQUIRE(to_text(*request.find("loaded_rows")) == R"({"full": 9, "mamba": 1, "swa": 4})");
  REQUIRE(to_text(*request.find("kl_mean")) == "0.25");

  REQUIRE(to_text(*scenarios[1].find("violations")) ==
          R"([{"invariant": "B6", "step": 12, "time_ns": 81000, "rank": 0, "request": "r2", )"
          R"("expected": "slot 3", "actual": "slot \"4\" & more"}, )"
          R"({"invariant": "D1", "step": 12, "time_ns": 81000, "rank": 0, "layer": 2, )"
          R"("row": 7, "token": 640, )"
          R"("expected": "slot 3", "actual": "slot \"4\" & more"}])");
  REQUIRE(to_text(*scenarios[2].find("verdict")) == "\"refused\"");
  REQUIRE(to_text(*scenarios[2].find("error")) == "\"x.json: full pool: zero-size\"");
}

TEST_CASE("a value that is missing or not finite is null") {
  const Json json = run_json(std::vector<RunEntry>{good_entry()});
  const auto& scenario = json.find("scenarios")->as<Json::Array>()->front();
  const Json& request = *scenario.find("requests")->find("r2");
  REQUIRE(to_text(*request.find("kl_max")) == "null");
  REQUIRE(to_text(*request.find("k3_mean")) == "null");
  REQUIRE(to_text(*json.find("ok")) == "true");
}

TEST_CASE("JUnit counts failures and errors and escapes what it shows") {
  const std::string xml =
      junit_xml(std::vector<RunEntry>{good_entry(), bad_entry(), refused_entry()});
  REQUIRE(contains(xml, R"(<testsuite name="lockstep run" tests="3" failures="1" errors="1">)"));
  REQUIRE(contains(xml, R"(<testcase classname="scenarios/upstream/restore-after-flush.json" )"
                        R"(name="restore-after-flush" time="1.500"/>)"));
  REQUIRE(contains(xml, R"(name="a &lt;bad&gt; one")"));
  REQUIRE(contains(xml, R"(<failure message="verdict: expected pass, found fail">)"));
  REQUIRE(contains(xml, "found slot &quot;4&quot; &amp; more"));
  REQUIRE(contains(xml, R"(<error message="x.json: full pool: zero-size"/>)"));
}

TEST_CASE("the table shows each scenario and what was violated") {
  const std::string text =
      run_table(std::vector<RunEntry>{good_entry(), bad_entry(), refused_entry()}, {});
  REQUIRE(contains(
      text,
      "scenario             verdict  as expected  commits  rows  restored tokens  violations\n"
      "restore-after-flush  pass     yes                6    40             1152  -\n"
      "a <bad> one          fail     NO                 6    40             1152  B6 D1\n"
      "refused              refused  NO                 -     -                -  -\n"));
  REQUIRE(contains(
      text,
      "B6 at step 12, 81000 ns, rank 0, request r2: expected slot 3, found slot \"4\" & more\n"));
  REQUIRE(contains(text, "D1 at step 12, 81000 ns, rank 0, layer 2, row 7, token 640: expected"));
  REQUIRE(contains(text, "verdict: expected pass, found fail\n"));
  REQUIRE(contains(
      text, "replay: lockstep run 'scenarios/upstream/restore-after-flush.json' --seed 1\n"));
  REQUIRE(contains(text, "1 of 3 scenarios as expected, 12 commits verified\n"));
  REQUIRE_FALSE(contains(text, "\x1b"));
}

TEST_CASE("violations beyond the limit are counted, expected ones shown when asked for") {
  RunEntry entry = bad_entry();
  ConsoleStyle style;
  style.violations = 1;
  REQUIRE(contains(run_table(std::vector<RunEntry>{entry}, style), "and 1 more violations\n"));
  entry.as_expected = true;
  entry.result.unexpected.clear();
  REQUIRE_FALSE(contains(run_table(std::vector<RunEntry>{entry}, style), "B6 at step"));
  style.show_expected = true;
  REQUIRE(contains(run_table(std::vector<RunEntry>{entry}, style), "B6 at step"));
}

TEST_CASE("colours do not shift the columns") {
  ConsoleStyle style;
  style.colours = true;
  std::string text = run_table(std::vector<RunEntry>{good_entry()}, style);
  REQUIRE(contains(text, "\x1b[32myes\x1b[0m"));
  for (const char* code : {"\x1b[32m", "\x1b[0m"}) {
    for (std::size_t at = text.find(code); at != text.npos; at = text.find(code)) {
      text.erase(at, std::string(code).size());
    }
  }
  REQUIRE(text == run_table(std::vector<RunEntry>{good_entry()}, {}));
}

}  // namespace lockstep::reports
