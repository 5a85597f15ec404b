#include "sim/expectations.h"

#include <limits>

#include "catch.h"
#include "sim/scenario_reader.h"

namespace lockstep::sim {
namespace {

// The "expect" object of a scenario with the requests r and s.
ExpectSpec expecting(const std::string& members) {
  const Result<Scenario> scenario = parse_scenario(
      R"({"version": 1, "name": "x", "prompts": {"A": {"random": 8}},
          "steps": [{"submit": "r", "prompt": "A", "decode": 1},
                    {"submit": "s", "prompt": "A", "decode": 1}],
          "expect": {)" +
          members + "}}",
      "x.json");
  INFO((scenario ? std::string() : scenario.error().message));
  REQUIRE(scenario.ok());
  return *scenario->expect;
}

// A run of r: 1152 tokens restored, all from the store.
RunResult good_run() {
  RequestResult request;
  request.outcome = "completed";
  request.restored_tokens = Tokens{1152};
  request.from_store = Tokens{1152};
  request.loaded_rows = {{"full", 9}, {"swa", 4}, {"mamba", 1}};
  request.comparison.kl_max = 0.0;
  request.comparison.kl_reference_max = 3e-13;
  RunResult result;
  result.requests["r"] = request;
  result.counters = {{"loads", 6}, {"commits_verified", 6}};
  result.faults_injected = {{"fail", 2}};
  return result;
}

RunResult run_with(const std::vector<std::string>& invariants) {
  RunResult result = good_run();
  for (const std::string& invariant : invariants) {
    oracle::Violation violation;
    violation.invariant = invariant;
    result.violations.push_back(violation);
  }
  return result;
}

using Sentences = std::vector<std::string>;

Sentences unmet(const std::string& expect, RunResult result, std::size_t events_matched = 0) {
  const ExpectSpec spec = expecting(expect);
  judge_expectations(&spec, events_matched, result);
  return result.unexpected;
}

Event event_of(RequestId request, EventBody body) {
  Event event;
  event.request = request;
  event.body = std::move(body);
  return event;
}

}  // namespace

TEST_CASE("without expectations a run must pass") {
  RunResult good = good_run();
  judge_expectations(nullptr, 0, good);
  REQUIRE(good.unexpected.empty());
  RunResult bad = run_with({"B6"});
  judge_expectations(nullptr, 0, bad);
  REQUIRE(bad.unexpected == Sentences{"verdict: expected pass, found fail"});
}

TEST_CASE("the verdict is compared both ways") {
  REQUIRE(unmet(R"("verdict": "pass")", good_run()).empty());
  REQUIRE(unmet(R"("verdict": "fail")", run_with({"B6"})).empty());
  REQUIRE(unmet(R"("verdict": "fail")", good_run()) ==
          Sentences{"verdict: expected fail, found pass"});
}

TEST_CASE("fields of a request are compared by value, range, word and null") {
  REQUIRE(
      unmet(R"("requests": {"r": {"outcome": "completed", "restored_tokens": 1152, "from_device": 0,
                   "recomputed": false, "loaded_rows": {"full": 9, "swa": {"min": 4}}, "kl_max": 0,
                   "kl_reference_max": {"max": 1e-9}, "kl_mean": null, "differing_logprobs": 0}})",
            good_run())
          .empty());
  REQUIRE(unmet(R"("requests": {"r": {"restored_tokens": 1024}})", good_run()) ==
          Sentences{"r.restored_tokens: expected 1024, found 1152"});
  REQUIRE(unmet(R"("requests": {"r": {"loaded_rows": {"full": {"min": 1, "max": 8}}}})",
                good_run()) == Sentences{"r.loaded_rows.full: expected >= 1 and <= 8, found 9"});
  REQUIRE(unmet(R"("requests": {"r": {"kl_mean": 0}})", good_run()) ==
          Sentences{"r.kl_mean: expected 0, found null"});
  REQUIRE(unmet(R"("requests": {"r": {"outcome": "refused"}})", good_run()) ==
          Sentences{"r.outcome: expected \"refused\", found \"completed\""});
  REQUIRE(unmet(R"("requests": {"s": {"outcome": "completed"}})", good_run()) ==
          Sentences{"s: expected a request of that name, found none"});
}

TEST_CASE("a value that is not a number meets no range") {
  RunResult run = good_run();
  run.requests["r"].comparison.kl_max = std::numeric_limits<double>::quiet_NaN();
  REQUIRE(unmet(R"("requests": {"r": {"kl_max": {"max": 1}}})", run).size() == 1);
}

TEST_CASE("counters are compared, nested ones too") {
  REQUIRE(unmet(R"("counters": {"loads": 6, "faults_injected": {"fail": {"min": 1}}})", good_run())
              .empty());
  REQUIRE(unmet(R"("counters": {"loads": 5, "reads": 1})", good_run()) ==
          Sentences{"counters.loads: expected 5, found 6",
                    "counters.reads: expected 1, but there is no such field"});
}

TEST_CASE("violations are compared as sets of names") {
  REQUIRE(unmet(R"("violations": [])", good_run()).empty());
  REQUIRE(unmet(R"("violations": ["D1", "B6"])", run_with({"B6", "D1", "B6"})).empty());
  REQUIRE(unmet(R"("violations": ["B6"])", run_with({"B6", "D1"})) ==
          Sentences{"violations: expected exactly B6, found B6, D1"});
  REQUIRE(unmet(R"("violations_at_least": ["B6"])", run_with({"B6", "D1"})).empty());
  REQUIRE(unmet(R"("violations_at_least": ["B6", "D2"])", run_with({"B6", "D1"})) ==
          Sentences{"violations: expected at least B6, D2, found B6, D1"});
  REQUIRE(unmet(R"("violations": [])", run_with({"C1"})) ==
          Sentences{"violations: expected exactly none, found C1"});
}

TEST_CASE("events are a subsequence with equal fields") {
  const ExpectSpec expect = expecting(
      R"("events": [{"event": "matched", "request": "r", "device_hit": 128},
                    {"event": "load_aborted", "component": "swa"},
                    {"event": "load_aborted", "component": "full"}])");
  const std::map<RequestId, std::string> names{{RequestId{0}, "r"}, {RequestId{1}, "s"}};
  Matched matched;
  matched.device_hit = Tokens{128};

  SECTION("in order, others between them") {
    EventMatcher matcher(expect.events, names);
    matcher.on_event(event_of(RequestId{0}, StepBegun{}));
    matcher.on_event(event_of(RequestId{0}, matched));
    matcher.on_event(event_of(RequestId{0}, LoadAborted{Component::mamba, {}}));
    matcher.on_event(event_of(RequestId{0}, LoadAborted{Component::swa, {}}));
    matcher.on_event(event_of(RequestId{1}, LoadAborted{Component::full, {}}));
    REQUIRE(matcher.matched() == 3);
  }
  SECTION("the order matters") {
    EventMatcher matcher(expect.events, names);
    matcher.on_event(event_of(RequestId{0}, matched));
    matcher.on_event(event_of(RequestId{0}, LoadAborted{Component::full, {}}));
    matcher.on_event(event_of(RequestId{0}, LoadAborted{Component::swa, {}}));
    REQUIRE(matcher.matched() == 2);
  }
  SECTION("request and fields must be equal") {
    EventMatcher matcher(expect.events, names);
    matcher.on_event(event_of(RequestId{1}, matched));
    matched.device_hit = Tokens{64};
    matcher.on_event(event_of(RequestId{0}, matched));
    matcher.on_event(event_of(kNoRequest, matched));
    REQUIRE(matcher.matched() == 0);
  }
  SECTION("a list of one number is that number") {
    const ExpectSpec lists = expecting(R"("events": [{"event": "looked_up", "restorable": 256}])");
    EventMatcher matcher(lists.events, names);
    const std::vector<Tokens> both{Tokens{128}, Tokens{256}};
    const std::vector<Tokens> one{Tokens{256}};
    matcher.on_event(event_of(RequestId{0}, LookedUp{Tokens{0}, both}));
    REQUIRE(matcher.matched() == 0);
    matcher.on_event(event_of(RequestId{0}, LookedUp{Tokens{0}, one}));
    REQUIRE(matcher.matched() == 1);
  }
  SECTION("a list is the whole list in its order") {
    const ExpectSpec lists = expecting(
        R"("events": [{"event": "looked_up", "restorable": [128, 256]},
                      {"event": "looked_up", "restorable": []}])");
    EventMatcher matcher(lists.events, names);
    const std::vector<Tokens> both{Tokens{128}, Tokens{256}};
    const std::vector<Tokens> turned{Tokens{256}, Tokens{128}};
    matcher.on_event(event_of(RequestId{0}, LookedUp{Tokens{0}, turned}));
    matcher.on_event(event_of(RequestId{0}, LookedUp{Tokens{0}, {}}));
    REQUIRE(matcher.matched() == 0);
    matcher.on_event(event_of(RequestId{0}, LookedUp{Tokens{0}, both}));
    REQUIRE(matcher.matched() == 1);
    matcher.on_event(event_of(RequestId{0}, LookedUp{Tokens{0}, {}}));
    REQUIRE(matcher.matched() == 2);
  }
}

TEST_CASE("the first expected event that did not come is named") {
  const std::string events =
      R"("events": ["matched", {"event": "load_aborted", "request": "r", "component": "swa"}])";
  REQUIRE(unmet(events, good_run(), 2).empty());
  REQUIRE(
      unmet(events, good_run(), 1) ==
      Sentences{
          "events: expected load_aborted of r component=\"swa\" as number 2, but it did not come "
          "after the ones before"});
}

}  // namespace lockstep::sim
