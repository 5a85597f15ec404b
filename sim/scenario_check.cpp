#include "sim/scenario_check.h"

#include <set>

#include "core/json.h"
#include "sim/expectations.h"

namespace lockstep::sim {
namespace {

std::string quoted(const std::string& name) {
  return to_text(Json(name));
}

Error wrong(const std::string& pointer, const std::string& what, const std::string& found) {
  return Error{pointer + ": expected " + what + ", found " + quoted(found)};
}

Result<void> check_prompt_starts(const Scenario& scenario) {
  for (const auto& [name, prompt] : scenario.prompts) {
    const std::string pointer = "/prompts/" + pointer_token(name) + "/from";
    if (prompt.from && !scenario.prompts.contains(*prompt.from)) {
      return wrong(pointer, "the name of a prompt", *prompt.from);
    }
    std::set<std::string> seen{name};
    for (const PromptSpec* at = &prompt; at->from && scenario.prompts.contains(*at->from);
         at = &scenario.prompts.at(*at->from)) {
      if (!seen.insert(*at->from).second) {
        return Error{
            pointer +
            ": expected a prompt that does not start with itself, found the cycle back to " +
            quoted(*at->from)};
      }
    }
  }
  return {};
}

// Walks the steps in order and knows which requests have been submitted.
class StepChecker {
 public:
  explicit StepChecker(const Scenario& scenario) : scenario_(scenario) {}

  Result<void> check_all() {
    for (std::size_t i = 0; i < scenario_.steps.size(); ++i) {
      pointer_ = "/steps/" + std::to_string(i);
      Result<void> result =
          std::visit([this](const auto& step) { return check(step); }, scenario_.steps[i]);
      if (!result) return result;
    }
    return {};
  }

  const std::set<std::string>& submitted() const { return submitted_; }

 private:
  Result<void> check(const SubmitStep& step) {
    Result<void> prompt = check_prompt("/prompt", step.prompt);
    if (!prompt) return prompt;
    return submit("/submit", step.request);
  }
  Result<void> check(const ForkStep& step) {
    Result<void> source = known("/fork", step.request);
    if (!source) return source;
    return submit("/as", step.as);
  }
  Result<void> check(const RunStep& step) {
    return step.until ? known("/run/until", step.until->first) : Result<void>();
  }
  Result<void> check(const FlushStep&) { return {}; }
  Result<void> check(const HoldStep& step) { return known("/hold", step.request); }
  Result<void> check(const ReleaseStep& step) { return known("/release", step.request); }
  Result<void> check(const CancelStep& step) { return known("/cancel", step.request); }
  Result<void> check(const RetractStep& step) { return known("/retract", step.request); }
  Result<void> check(const RestartStep&) { return {}; }
  Result<void> check(const PickStep&) { return {}; }
  Result<void> check(const EvictStep& step) {
    if (step.rank && !step.from_store) {
      return Error{pointer_ +
                   "/evict/rank: expected none, as ranks evict from the device alike, found " +
                   std::to_string(step.rank->value())};
    }
    if (step.rank && step.rank->value() >= scenario_.ranks) {
      return Error{pointer_ + "/evict/rank: expected a rank below " +
                   std::to_string(scenario_.ranks) + ", found " +
                   std::to_string(step.rank->value())};
    }
    return step.prompt ? check_prompt("/evict/prompt", *step.prompt) : Result<void>();
  }

  // The prompt exists, and whatever it takes the output of has been submitted.
  Result<void> check_prompt(const std::string& key, const std::string& name) {
    const auto found = scenario_.prompts.find(name);
    if (found == scenario_.prompts.end())
      return wrong(pointer_ + key, "the name of a prompt", name);
    const PromptSpec* prompt = &found->second;
    while (prompt->from) prompt = &scenario_.prompts.at(*prompt->from);
    if (prompt->output_of && !submitted_.contains(*prompt->output_of)) {
      return Error{pointer_ + key + ": expected a prompt whose request " +
                   quoted(*prompt->output_of) + " was submitted by an earlier step, found " +
                   quoted(name)};
    }
    return {};
  }

  Result<void> submit(const std::string& key, const std::string& request) {
    if (submitted_.insert(request).second) return {};
    return wrong(pointer_ + key, "a name that no earlier request has", request);
  }

  Result<void> known(const std::string& key, const std::string& request) {
    if (submitted_.contains(request)) return {};
    return wrong(pointer_ + key, "a request that an earlier step submitted", request);
  }

  const Scenario& scenario_;
  std::set<std::string> submitted_;
  std::string pointer_;
};

Result<void> check_outputs(const Scenario& scenario, const std::set<std::string>& submitted) {
  for (const auto& [name, prompt] : scenario.prompts) {
    if (prompt.output_of && !submitted.contains(*prompt.output_of)) {
      return wrong("/prompts/" + pointer_token(name) + "/output_of", "the name of a request",
                   *prompt.output_of);
    }
  }
  return {};
}

Result<void> check_faults(const Scenario& scenario, const std::set<std::string>& submitted) {
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    const FaultSpec& fault = scenario.faults[i];
    const std::string pointer = "/faults/" + std::to_string(i);
    if (fault.request && !submitted.contains(*fault.request)) {
      return wrong(pointer + "/request", "the name of a request", *fault.request);
    }
    const std::string& target = fault.action.request;
    if (!target.empty() && !submitted.contains(target)) {
      return wrong(pointer + "/do/" + fault.action.kind, "the name of a request", target);
    }
    if (fault.rank && fault.rank->value() >= scenario.ranks) {
      return Error{pointer + "/rank: expected a rank below " + std::to_string(scenario.ranks) +
                   ", found " + std::to_string(fault.rank->value())};
    }
  }
  return {};
}

Result<void> check_expectations(const Scenario& scenario, const std::set<std::string>& submitted) {
  if (!scenario.expect) return {};
  for (const auto& [request, fields] : scenario.expect->requests) {
    const std::string pointer = "/expect/requests/" + pointer_token(request);
    if (!submitted.contains(request)) return wrong(pointer, "the name of a request", request);
    for (const auto& [path, value] : fields) {
      if (!is_request_field(path)) {
        std::string place = pointer + "/";
        for (char c : path) place += c == '.' ? '/' : c;
        return wrong(place, "a field of a request's result", path);
      }
    }
  }
  for (std::size_t i = 0; i < scenario.expect->events.size(); ++i) {
    const auto& request = scenario.expect->events[i].request;
    if (request && !submitted.contains(*request)) {
      return wrong("/expect/events/" + std::to_string(i) + "/request", "the name of a request",
                   *request);
    }
  }
  return {};
}

Result<void> check_speculation(const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.speculation.size(); ++i) {
    const SpeculationStep& step = scenario.speculation[i];
    if (step.accept <= step.draft) continue;
    return Error{"/speculation/" + std::to_string(i) + "/accept: expected at most the " +
                 std::to_string(step.draft.value()) + " tokens drafted, found " +
                 std::to_string(step.accept.value())};
  }
  return {};
}

}  // namespace

Result<void> check_references(const Scenario& scenario) {
  Result<void> result = check_prompt_starts(scenario);
  if (!result) return result;
  result = check_speculation(scenario);
  if (!result) return result;
  StepChecker steps(scenario);
  result = steps.check_all();
  if (!result) return result;
  result = check_outputs(scenario, steps.submitted());
  if (!result) return result;
  result = check_faults(scenario, steps.submitted());
  if (!result) return result;
  return check_expectations(scenario, steps.submitted());
}

}  // namespace lockstep::sim
