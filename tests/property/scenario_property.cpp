// Scenarios as values: what the generator draws is valid, also after deleting from it, and a file
// holds all of it.
#include <algorithm>

#include <rapidcheck.h>

#include "catch.h"
#include "property.h"
#include "scenario_draw.h"
#include "sim/scenario_check.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_repair.h"
#include "sim/scenario_run.h"

namespace lockstep {
namespace {

using sim::Scenario;

sim::GeneratorOptions draw_options() {
  constexpr std::array kProfiles{sim::Profile::smoke, sim::Profile::nightly,
                                 sim::Profile::ranks, sim::Profile::pressure,
                                 sim::Profile::races, sim::Profile::numeric};
  const auto profile = *rc::gen::elementOf(std::vector(kProfiles.begin(), kProfiles.end()));
  return {profile, profile == sim::Profile::numeric ? "inkling-pico" : "fingerprint"};
}

std::string draw_text() {
  return *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("ab \"\\/\n\t{}[]:,\x7f\x01")));
}

sim::NumberRange draw_range() {
  // Eighths: exact in binary, with few digits.
  const double low = *rc::gen::inRange(-8000, 8000) / 8.0;
  const double size = *rc::gen::inRange(0, 800) / 8.0;
  sim::NumberRange range;
  if (*rc::gen::arbitrary<bool>()) range.min = low;
  if (!range.min || *rc::gen::arbitrary<bool>()) range.max = low + size;
  return range;
}

std::string name_of_request(const Scenario& scenario) {
  for (const sim::Step& step : scenario.steps) {
    if (const auto* submit = std::get_if<sim::SubmitStep>(&step)) return submit->request;
  }
  return "";
}

// What people write and the generator does not.
void add_expectations(Scenario& scenario) {
  scenario.about = draw_text();
  sim::ExpectSpec expect;
  expect.pass = *rc::gen::arbitrary<bool>();
  const std::string request = name_of_request(scenario);
  if (!request.empty()) {
    expect.requests[request] = {{"restored_tokens", draw_range()},
                                {"loaded_rows.full", draw_range()},
                                {"recomputed", *rc::gen::arbitrary<bool>()},
                                {"kl_max", nullptr},
                                {"outcome", std::string("completed")}};
  }
  expect.counters = {{"loads", draw_range()}};
  if (*rc::gen::arbitrary<bool>()) expect.violations = {"B4", "D1"};
  sim::ExpectedEvent event;
  event.event = "load_planned";
  event.fields = {{"boundary", *rc::gen::inRange<std::int64_t>(0, 9999)},
                  {"full", *rc::gen::arbitrary<std::vector<std::int64_t>>()}};
  expect.events.push_back(event);
  scenario.expect = expect;
}

// With what its picks chose in place of the picks.
Scenario with_moves_named(Scenario scenario) {
  std::vector<sim::Step> taken;
  sim::RunOptions options;
  options.taken = &taken;
  RC_PRE(sim::run_scenario(scenario, options).ok());
  scenario.steps = std::move(taken);
  return scenario;
}

// Without the notes of where the reader found each model.
Scenario without_sources(Scenario scenario) {
  scenario.model.source.clear();
  const auto clear = [](sim::RestartStep& restart) {
    if (restart.model) restart.model->source.clear();
  };
  for (sim::Step& step : scenario.steps) {
    if (auto* restart = std::get_if<sim::RestartStep>(&step)) clear(*restart);
  }
  for (sim::FaultSpec& fault : scenario.faults) {
    if (fault.restart) clear(*fault.restart);
  }
  return scenario;
}

// A turn of a conversation needs the turn before to have ended.
bool has_turns(const Scenario& scenario) {
  return std::ranges::any_of(
      scenario.prompts, [](const auto& prompt) { return prompt.second.output_of.has_value(); });
}

std::string refusal(const Scenario& scenario) {
  const Result<sim::RunResult> result = sim::run_scenario(scenario, {});
  return result ? "" : result.error().message;
}

}  // namespace

TEST_CASE("scenario JSON round trip") {
  testing::require_property("scenario JSON round trip", 400, [] {
    Scenario scenario = testing::draw_scenario(draw_options());
    if (*rc::gen::inRange(0, 4) == 0) scenario = with_moves_named(std::move(scenario));
    if (*rc::gen::arbitrary<bool>()) add_expectations(scenario);
    const std::string text = sim::write_scenario(scenario);
    Result<Scenario> read = sim::parse_scenario(text, "x.json");
    RC_LOG() << (read ? "" : read.error().message) << "\n";
    RC_ASSERT(read.ok());
    RC_ASSERT((without_sources(*read) == without_sources(scenario)));
    RC_ASSERT(sim::write_scenario(*read) == text);
  });
}

TEST_CASE("the generator makes only valid scenarios") {
  testing::require_property("the generator makes only valid scenarios", 150, [] {
    // Not shrunken: a simpler scenario is not the generator's.
    const auto seed = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 53);
    Scenario scenario = sim::generate(draw_options(), seed);
    RC_ASSERT(sim::check_references(scenario).ok());
    RC_ASSERT(refusal(scenario) == "");
    // Any steps may go: what named them goes with them, and picks choose among what is left. Only
    // those that let a turn end must stay.
    const bool keeps_runs = has_turns(scenario);
    const auto keeps =
        *rc::gen::container<std::vector<bool>>(scenario.steps.size(), rc::gen::arbitrary<bool>());
    std::vector<sim::Step> kept;
    for (std::size_t i = 0; i < std::min(keeps.size(), scenario.steps.size()); ++i) {
      const bool is_run = std::holds_alternative<sim::RunStep>(scenario.steps[i]);
      if (keeps[i] || (keeps_runs && is_run)) kept.push_back(scenario.steps[i]);
    }
    scenario.steps = kept;
    sim::drop_dangling(scenario);
    RC_ASSERT(sim::check_references(scenario).ok());
    RC_ASSERT(refusal(scenario) == "");
  });
}

}  // namespace lockstep
