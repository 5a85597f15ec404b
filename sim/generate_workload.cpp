// Prompts and steps of a generated scenario.
#include <algorithm>
#include <numeric>

#include "sim/generate_parts.h"
#include "sim/prompt_length.h"

namespace lockstep::sim {

namespace {

constexpr std::int64_t kMaxUnits = 4;  // pages or grids of a prompt that shares nothing
constexpr std::int64_t kMaxPages = 12;
constexpr std::uint64_t kPickBits = 30;

class Workload {
 public:
  Workload(const FeatureSet& features, Draw draw, Scenario& scenario)
      : features_(features), draw_(draw), scenario_(scenario), page_(scenario.cache.page.value()) {
    grid_ = std::lcm(page_, scenario.model.state_chunk->value());
    for (const auto& [feature, action] : kActions) {
      if (has(features, feature)) actions_.push_back(action);
    }
  }

  void draw_steps(std::int64_t count) {
    submit();
    for (std::int64_t i = 0; i < count; ++i) {
      let_time_pass();
      act();
    }
    drain();
    if (draw_.one_in(2)) restore_undisturbed();
  }

 private:
  using Action = void (Workload::*)();
  static const std::array<std::pair<Feature, Action>, 10> kActions;

  void act() {
    if (actions_.empty() || draw_.one_in(2)) return submit();
    (this->*draw_.of(actions_))();
  }

  void let_time_pass() {
    RunStep run;
    switch (draw_.between(0, 5)) {
      case 0:
        return;  // the next action comes in the same step
      case 1:
        run.idle = true;
        // Who is held does not end.
        if (!wants(Feature::hold)) ended_ = requests_;
        break;
      default:
        run.steps = 1 + draw_.logarithmic(4);
    }
    scenario_.steps.emplace_back(run);
  }

  void drain() {
    RunStep run;
    run.drain = true;
    scenario_.steps.emplace_back(run);
    ended_ = requests_;
  }

  void restore_undisturbed() {
    scenario_.steps.emplace_back(FlushStep{});
    if (wants(Feature::conversation)) {
      submit();
    } else {
      submit_prompt(draw_.of(prompts_));
    }
    drain();
  }

  // ---- requests

  void submit() {
    const bool repeat = wants(Feature::repeated_prompt) && !prompts_.empty() && draw_.one_in(4);
    if (!repeat) new_prompt();
    submit_prompt(repeat ? draw_.of(prompts_) : prompts_.back());
  }

  void submit_prompt(const std::string& prompt) {
    SubmitStep step;
    step.request = request_name(++requests_);
    step.prompt = prompt;
    step.decode = Tokens{1 + draw_.logarithmic(draw_.one_in(4) ? 6 : 3)};
    static const std::vector<std::string> kKeys{"a", "b", ""};
    if (wants(Feature::extra_key) && draw_.one_in(3)) step.extra_key = draw_.of(kKeys);
    if (wants(Feature::cache_salt) && draw_.one_in(3)) step.cache_salt = draw_.of(kKeys);
    scenario_.steps.emplace_back(step);
  }

  static std::string request_name(std::uint64_t number) { return "r" + std::to_string(number); }

  void new_prompt() {
    PromptSpec prompt;
    const bool goes_on = wants(Feature::conversation) && ended_ > 0 && draw_.one_in(2);
    const bool shares = wants(Feature::shared_prompts) && !prompts_.empty() && !draw_.one_in(3);
    const bool drawn = goes_on ? go_on(prompt) : shares && extend(prompt);
    if (!drawn) {
      prompt = PromptSpec{};
      prompt.random = RandomTokens{Tokens{length()}, new_seed()};
    }
    prompts_.push_back("p" + std::to_string(prompts_.size() + 1));
    scenario_.prompts.emplace(prompts_.back(), prompt);
  }

  // The next turn of a conversation: what a request said, and more. False if that is too long.
  bool go_on(PromptSpec& prompt) {
    prompt.output_of = request_name(
        static_cast<std::uint64_t>(draw_.between(1, static_cast<std::int64_t>(ended_))));
    const std::int64_t added = draw_.one_in(4) ? draw_.between(0, 1) : length();
    if (added > 0) prompt.then.push_back({Tokens{added}, new_seed()});
    return is_short_enough(prompt);
  }

  bool is_short_enough(const PromptSpec& prompt) {
    constexpr auto kDrawn = "drawn";
    scenario_.prompts.emplace(kDrawn, prompt);
    const Tokens length = prompt_length(scenario_, kDrawn);
    scenario_.prompts.erase(kDrawn);
    return length <= Tokens{kMaxPages * page_};
  }

  // Chains, stars and combs: from the last, the first or any prompt, whole or cut at a page edge or
  // one token beside it. False if that would be too long.
  bool extend(PromptSpec& prompt) {
    switch (draw_.between(0, 2)) {
      case 0:
        prompt.from = prompts_.back();
        break;
      case 1:
        prompt.from = prompts_.front();
        break;
      default:
        prompt.from = draw_.of(prompts_);
    }
    const std::int64_t kept = prompt_length(scenario_, *prompt.from).value();
    // Of an output nobody knows how long it will be.
    if (kept > 1 && !starts_with_output(*prompt.from) && draw_.one_in(2)) {
      prompt.take = Tokens{std::clamp(draw_.between(0, kept / page_) * page_ + draw_.between(-1, 1),
                                      std::int64_t{1}, kept)};
    }
    const std::int64_t added = draw_.one_in(4) ? draw_.between(0, 1) : length();
    if (added > 0) prompt.then.push_back({Tokens{added}, new_seed()});
    return is_short_enough(prompt);
  }

  bool starts_with_output(const std::string& name) const {
    const PromptSpec* prompt = &scenario_.prompts.at(name);
    while (prompt->from) prompt = &scenario_.prompts.at(*prompt->from);
    return prompt->output_of.has_value();
  }

  // m * g + r: residues of page and grid, and prompts shorter than a page.
  std::int64_t length() {
    const std::int64_t unit = draw_.one_in(2) ? page_ : grid_;
    const std::int64_t rest = draw_.one_in(2) ? draw_.between(-1, 1) : draw_.between(0, unit - 1);
    const std::int64_t wanted = draw_.between(0, kMaxUnits) * unit + rest;
    return std::clamp(wanted, std::int64_t{1}, kMaxPages * page_);
  }

  std::uint64_t new_seed() { return ++seeds_; }

  // ---- disturbances

  void pick(MoveKind kind) {
    const std::int64_t number = draw_.between(0, (std::int64_t{1} << kPickBits) - 1);
    scenario_.steps.emplace_back(PickStep{static_cast<std::uint64_t>(number), kind});
  }
  void fork() { pick(MoveKind::fork); }
  void cancel() { pick(MoveKind::cancel); }
  void retract() { pick(MoveKind::retract); }
  void hold_or_release() {
    if (!prompts_.empty() && draw_.one_in(4)) return share_a_load();
    pick(draw_.one_in(2) ? MoveKind::hold : MoveKind::release);
  }
  // Two requests want the same at once; one of them may be held while its load brings it.
  void share_a_load() {
    const std::string prompt = draw_.of(prompts_);
    flush();
    submit_prompt(prompt);
    submit_prompt(prompt);
    pick(MoveKind::hold);
  }
  void flush() { scenario_.steps.emplace_back(FlushStep{}); }
  void evict_device() { evict(false); }
  void evict_store() { evict(true); }

  void evict(bool from_store) {
    EvictStep step;
    step.from_store = from_store;
    step.component = kComponents[static_cast<std::size_t>(draw_.between(0, 2))];
    // The device is evicted on all ranks: one alone would have another tree than the others.
    if (from_store && draw_.one_in(2)) {
      step.rank = RankId{static_cast<std::uint32_t>(draw_.between(0, scenario_.ranks - 1))};
    }
    if (draw_.one_in(2)) {
      step.count = draw_.between(1, 3);
    } else {
      step.prompt = draw_.of(prompts_);
      const std::int64_t pages = prompt_length(scenario_, *step.prompt).value() / page_;
      step.at = Tokens{page_ * draw_.between(1, std::max<std::int64_t>(1, pages))};
    }
    scenario_.steps.emplace_back(step);
  }

  void restart_engine() {
    RestartStep step;
    step.engine = true;
    scenario_.steps.emplace_back(step);
  }

  void restart_store() {
    RestartStep step;
    step.store = true;
    step.keep = draw_.one_in(2);
    scenario_.steps.emplace_back(step);
  }

  bool wants(Feature feature) const { return has(features_, feature); }

  const FeatureSet& features_;
  Draw draw_;
  Scenario& scenario_;
  std::int64_t page_;
  std::int64_t grid_ = 1;
  std::vector<Action> actions_;
  std::vector<std::string> prompts_;
  std::uint64_t requests_ = 0;
  std::uint64_t ended_ = 0;  // the first so many of them have ended for sure
  std::uint64_t seeds_ = 0;
};

constexpr std::array<std::pair<Feature, Workload::Action>, 10> Workload::kActions{{
    {Feature::fork, &Workload::fork},
    {Feature::cancel, &Workload::cancel},
    {Feature::retract, &Workload::retract},
    {Feature::hold, &Workload::hold_or_release},
    {Feature::flush, &Workload::flush},
    {Feature::evict_device, &Workload::evict_device},
    {Feature::evict_store, &Workload::evict_store},
    {Feature::restart_engine, &Workload::restart_engine},
    {Feature::restart_store, &Workload::restart_store},
    {Feature::restart_changed, &Workload::restart_engine},
}};

}  // namespace

Needs needs_of(const Scenario& scenario) {
  const std::int64_t page = scenario.cache.page.value();
  const std::int64_t pages = (longest_request(scenario).value() + page - 1) / page;
  const std::int64_t window =
      std::max<std::int64_t>(1, (scenario.model.window->value() - 1 + page - 1) / page);
  return {Rows{pages}, Rows{std::min(pages, 2 * window + 1)}};
}

void draw_workload(const FeatureSet& features, Profile profile, Draw draw, Scenario& scenario) {
  const std::int64_t actions =
      profile == Profile::nightly ? draw.between(8, 40) : draw.between(3, 12);
  Workload(features, draw, scenario).draw_steps(actions);
}

}  // namespace lockstep::sim
