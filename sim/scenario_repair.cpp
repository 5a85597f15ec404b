#include "sim/scenario_repair.h"

#include <algorithm>
#include <set>

namespace lockstep::sim {

namespace {

// Walks the steps in order: keeps those whose requests are known by then.
class StepFilter {
 public:
  explicit StepFilter(const Scenario& scenario) : scenario_(scenario) {}

  bool keeps(const Step& step) {
    return std::visit([this](const auto& concrete) { return keep(concrete); }, step);
  }
  const std::set<std::string>& known() const { return known_; }

 private:
  bool keep(const SubmitStep& step) {
    return has_output(step.prompt) && known_.insert(step.request).second;
  }
  bool keep(const ForkStep& step) {
    return known_.contains(step.request) && known_.insert(step.as).second;
  }
  bool keep(const RunStep& step) { return !step.until || known_.contains(step.until->first); }
  bool keep(const HoldStep& step) { return known_.contains(step.request); }
  bool keep(const ReleaseStep& step) { return known_.contains(step.request); }
  bool keep(const CancelStep& step) { return known_.contains(step.request); }
  bool keep(const RetractStep& step) { return known_.contains(step.request); }
  bool keep(const EvictStep& step) { return !step.prompt || has_output(*step.prompt); }
  bool keep(const FlushStep&) { return true; }
  bool keep(const RestartStep&) { return true; }
  bool keep(const PickStep&) { return true; }

  // The request whose output the prompt starts with, if any, has been submitted.
  bool has_output(const std::string& prompt) const {
    const PromptSpec* spec = &scenario_.prompts.at(prompt);
    while (spec->from) spec = &scenario_.prompts.at(*spec->from);
    return !spec->output_of || known_.contains(*spec->output_of);
  }

  const Scenario& scenario_;
  std::set<std::string> known_;
};

std::set<std::string> used_prompts(const Scenario& scenario) {
  std::set<std::string> used;
  for (const Step& step : scenario.steps) {
    if (const auto* submit = std::get_if<SubmitStep>(&step)) used.insert(submit->prompt);
    if (const auto* evict = std::get_if<EvictStep>(&step); evict != nullptr && evict->prompt) {
      used.insert(*evict->prompt);
    }
  }
  const std::set<std::string> direct = used;
  for (const std::string& name : direct) {
    const PromptSpec* spec = &scenario.prompts.at(name);
    for (; spec->from; spec = &scenario.prompts.at(*spec->from)) used.insert(*spec->from);
  }
  return used;
}

}  // namespace

void drop_dangling(Scenario& scenario) {
  StepFilter filter(scenario);
  std::vector<Step> kept;
  for (const Step& step : scenario.steps) {
    if (filter.keeps(step)) kept.push_back(step);
  }
  scenario.steps = std::move(kept);
  std::erase_if(scenario.faults, [&](const FaultSpec& fault) {
    const std::string& target = fault.action.request;
    return (fault.request && !filter.known().contains(*fault.request)) ||
           (!target.empty() && !filter.known().contains(target));
  });
  const std::set<std::string> used = used_prompts(scenario);
  std::erase_if(scenario.prompts, [&](const auto& entry) { return !used.contains(entry.first); });
}

}  // namespace lockstep::sim
