// Properties of whole runs, judged without the oracle: by another run of the same request, by what
// the events say was taken and given back, and by the bytes in the rows.
#include <algorithm>

#include <rapidcheck.h>

#include "catch.h"
#include "property.h"
#include "run_record.h"
#include "scenario_draw.h"
#include "sim/world.h"

namespace lockstep {
namespace {

using sim::Scenario;
using testing::RunRecord;

sim::RunStep idle() {
  sim::RunStep step;
  step.idle = true;
  return step;
}

sim::RunStep drain() {
  sim::RunStep step;
  step.drain = true;
  return step;
}

// Everything ends, then the tree is emptied: whatever is held after that is lost.
void end_empty(Scenario& scenario) {
  scenario.steps.emplace_back(drain());
  scenario.steps.emplace_back(sim::FlushStep{});
  scenario.steps.emplace_back(drain());
}

// Every drawn scenario can be run; what it is shrunken to is passed over if it cannot.
sim::RunResult run_drawn(const Scenario& scenario, RunRecord& record) {
  std::optional<sim::RunResult> result = testing::run(scenario, record);
  RC_PRE(result.has_value());
  return *std::move(result);
}

std::uint64_t events_of(const Scenario& scenario) {
  RunRecord record;
  run_drawn(scenario, record);
  return record.events();
}

std::vector<std::string> submitted(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const sim::Step& step : scenario.steps) {
    if (const auto* submit = std::get_if<sim::SubmitStep>(&step)) names.push_back(submit->request);
  }
  return names;
}

void add_fault_at_event(Scenario& scenario, const std::string& kind, const std::string& request) {
  sim::FaultSpec fault;
  fault.on = sim::FaultPhase::event;
  fault.nth =
      *rc::gen::inRange<std::int64_t>(1, static_cast<std::int64_t>(events_of(scenario)) + 1);
  fault.action.kind = kind;
  fault.action.request = request;
  scenario.faults.push_back(fault);
}

void require_as_alone(const Scenario& scenario, const RunRecord& record) {
  for (const auto& [id, request] : record.requests()) {
    const std::string difference = testing::difference_from_alone(scenario, request);
    RC_LOG() << "request " << id.value() << ": " << difference << "\n";
    RC_ASSERT(difference == "");
  }
}

// Pages of one to eight tokens and windows around them.
Scenario draw_sizes() {
  Scenario scenario;
  scenario.name = "drawn";
  scenario.seed = *rc::gen::inRange<std::uint64_t>(1, 1000);
  const bool numeric = *rc::gen::inRange(0, 8) == 0;
  scenario.model.preset = numeric ? "inkling-pico" : "fingerprint";
  const auto page = *rc::gen::inRange<std::int64_t>(1, 9);
  scenario.cache.page = Tokens{page};
  scenario.cache.track_interval = scenario.cache.page * *rc::gen::inRange<std::int64_t>(1, 4);
  scenario.cache.prefill_chunk = Tokens{*rc::gen::inRange<std::int64_t>(1, 4 * page + 1)};
  scenario.cache.full_pages = scenario.cache.swa_pages = Rows{256};
  scenario.model.window = Tokens{*rc::gen::inRange<std::int64_t>(1, 3 * page + 3)};
  scenario.model.state_chunk = Tokens{page * *rc::gen::inRange<std::int64_t>(1, 3)};
  scenario.ranks = *rc::gen::inRange<std::int64_t>(1, 3);
  if (*rc::gen::arbitrary<bool>()) scenario.cache.overlap = OverlapPolicy::barrier;
  if (*rc::gen::arbitrary<bool>()) scenario.cache.publish = PublishPolicy::after_load;
  if (*rc::gen::arbitrary<bool>()) scenario.cache.object_order = ObjectOrder::descending;
  if (*rc::gen::arbitrary<bool>()) scenario.cache.checkpoints = CheckpointPolicy::every;
  scenario.cache.ahead = *rc::gen::inRange<std::int64_t>(0, 2);
  return scenario;
}

void submit(Scenario& scenario, const std::string& request, const std::string& prompt) {
  sim::SubmitStep step;
  step.request = request;
  step.prompt = prompt;
  step.decode = Tokens{*rc::gen::inRange<std::int64_t>(1, 20)};
  scenario.steps.emplace_back(step);
  scenario.steps.emplace_back(idle());
}

Tokens draw_length() {
  return Tokens{*rc::gen::inRange<std::int64_t>(1, 50)};
}

// Two turns; the second restores what the first has left in the store.
Scenario draw_two_turns() {
  Scenario scenario = draw_sizes();
  scenario.prompts["first"].random = sim::RandomTokens{draw_length(), 1};
  scenario.prompts["second"].output_of = "r1";
  scenario.prompts["second"].then.push_back({draw_length(), 2});
  submit(scenario, "r1", "first");
  scenario.steps.emplace_back(sim::FlushStep{});
  submit(scenario, "r2", "second");
  return scenario;
}

}  // namespace

TEST_CASE("any batching = alone") {
  testing::require_property("any batching = alone", 150, [] {
    const Scenario scenario = testing::draw_scenario({});
    // A restart may change the model.
    RC_PRE(std::ranges::none_of(scenario.steps, [](const sim::Step& step) {
      return std::holds_alternative<sim::RestartStep>(step);
    }));
    RC_PRE(std::ranges::none_of(scenario.faults, [](const sim::FaultSpec& fault) {
      return fault.restart && fault.restart->model;
    }));
    RunRecord record;
    run_drawn(scenario, record);
    require_as_alone(scenario, record);
  });
}

TEST_CASE("restored = uninterrupted") {
  int restored = 0;
  testing::require_property("restored = uninterrupted", 150, [&] {
    const Scenario scenario = draw_two_turns();
    RunRecord record;
    const sim::RunResult result = run_drawn(scenario, record);
    restored += result.requests.at("r2").restored_tokens > Tokens{0};
    require_as_alone(scenario, record);
  });
  REQUIRE(restored > 50);
}

TEST_CASE("cancel at any point leaves nothing") {
  testing::require_property("cancel at any point leaves nothing", 150, [] {
    Scenario scenario = testing::draw_scenario({});
    const std::vector<std::string> names = submitted(scenario);
    RC_PRE(!names.empty());
    add_fault_at_event(scenario, "cancel", *rc::gen::elementOf(names));
    end_empty(scenario);
    RunRecord record;
    run_drawn(scenario, record);
    RC_ASSERT(record.left() == "");
  });
}

TEST_CASE("flush at any point leaves nothing") {
  testing::require_property("flush at any point leaves nothing", 150, [] {
    Scenario scenario = testing::draw_scenario({});
    RC_PRE(!submitted(scenario).empty());
    add_fault_at_event(scenario, "flush", "");
    end_empty(scenario);
    RunRecord record;
    run_drawn(scenario, record);
    RC_ASSERT(record.flushes() > 0u);
    RC_ASSERT(record.left_by_flushes() == "");
    RC_ASSERT(record.left() == "");
  });
}

}  // namespace lockstep
