// Runs a scenario: resolves its prompts, takes its steps one after the other, compares with what it
// expects.
#include <algorithm>

#include "core/random.h"
#include "sim/expectations.h"
#include "sim/moves.h"
#include "sim/scenario_run.h"
#include "sim/world.h"

namespace lockstep::sim {

namespace {

WorldConfig world_config(const Scenario& scenario, const RunOptions& options) {
  WorldConfig config;
  config.model = scenario.model;
  config.cache = scenario.cache;
  config.ranks = scenario.ranks;
  config.store = scenario.store;
  config.schedule = scenario.schedule;
  config.speculation = scenario.speculation;
  config.seed = options.seed.value_or(scenario.seed);
  config.faults = scenario.faults;
  config.defects = scenario.defects;
  if (scenario.expect) config.expected_events = scenario.expect->events;
  config.stop_at_first = options.stop_at_first;
  config.most_events = options.most_events;
  config.backend = options.backend;
  config.watch = options.watch;
  config.observer = options.observer;
  return config;
}

engine::Point to_engine(Point point) {
  // The two lists are the same; the engine does not know scenarios.
  return static_cast<engine::Point>(point);
}

class ScenarioRun {
 public:
  ScenarioRun(const Scenario& scenario, World& world, std::vector<Step>* taken)
      : scenario_(scenario), world_(world), taken_(taken) {}

  Result<void> take(const Step& step) {
    if (taken_ != nullptr && !std::holds_alternative<PickStep>(step)) taken_->push_back(step);
    return std::visit([&](const auto& concrete) { return take(concrete); }, step);
  }

 private:
  Result<void> take(const PickStep& step) {
    const std::optional<Step> move = choose_move(step, scenario_, world_);
    return move ? take(*move) : Result<void>();
  }

  Result<void> take(const SubmitStep& step) {
    auto prompt = resolve(step.prompt);
    if (!prompt) return prompt.error();
    return submit(step.request, std::move(*prompt), step.decode, {step.extra_key, step.cache_salt});
  }

  Result<void> take(const ForkStep& step) {
    const RequestId source = *world_.find(step.request);
    const std::vector<TokenId>& tokens = world_.tokens_of(source);
    if (step.at.index() > tokens.size()) {
      return Error{"fork \"" + step.as + "\": at " + std::to_string(step.at.value()) +
                   " lies beyond the " + std::to_string(tokens.size()) + " tokens of \"" +
                   step.request + "\""};
    }
    std::vector<TokenId> prompt(tokens.begin(),
                                tokens.begin() + static_cast<std::ptrdiff_t>(step.at.index()));
    for (const RandomTokens& more : step.then) append(prompt, more);
    return submit(step.as, std::move(prompt), step.decode, {step.extra_key, step.cache_salt});
  }

  Result<void> take(const RunStep& step) {
    if (step.until) {
      run_until(step.until->first, to_engine(step.until->second));
    } else if (step.steps) {
      const std::uint64_t last = world_.steps() + static_cast<std::uint64_t>(*step.steps);
      while (world_.steps() < last && world_.advance()) {
      }
    } else {
      if (step.drain) disturb_no_more();
      while (world_.advance()) {
      }
      if (!world_.over()) world_.audit();
    }
    return {};
  }

  void disturb_no_more() {
    world_.stop_faults();
    held_.clear();
    for (const engine::Request* request : world_.engine().unfinished()) {
      world_.engine().release(request->id);
    }
  }

  Result<void> take(const FlushStep&) {
    world_.engine().flush();
    return {};
  }

  Result<void> take(const HoldStep& step) {
    const RequestId id = *world_.find(step.request);
    held_[id] = to_engine(step.at);
    world_.engine().hold(id, to_engine(step.at));
    return {};
  }

  Result<void> take(const ReleaseStep& step) {
    const RequestId id = *world_.find(step.request);
    const auto held = held_.find(id);
    if (held != held_.end() && !world_.engine().reached(id, held->second)) {
      world_.report("U1", id, "the point that the request was to be held at", "never reached");
    }
    held_.erase(id);
    world_.engine().release(id);
    return {};
  }

  Result<void> take(const EvictStep& step) {
    std::vector<TokenId> tokens;
    if (step.prompt) {
      auto prompt = resolve(*step.prompt);
      if (!prompt) return prompt.error();
      tokens = std::move(*prompt);
    }
    if (step.from_store) {
      evict_from_store(step, tokens);
      return {};
    }
    engine::EvictCommand command;
    command.component = step.component;
    command.count = Rows{step.count.value_or(0)};
    command.tokens = std::move(tokens);
    command.at = step.at;
    world_.engine().evict(std::move(command));
    return {};
  }

  Result<void> take(const CancelStep& step) {
    world_.engine().cancel(*world_.find(step.request));
    return {};
  }

  Result<void> take(const RetractStep& step) {
    world_.engine().retract(*world_.find(step.request));
    return {};
  }

  Result<void> take(const RestartStep& step) { return world_.restart(step); }

  void run_until(const std::string& request, engine::Point point) {
    const RequestId id = *world_.find(request);
    while (!world_.engine().reached(id, point)) {
      if (world_.advance()) continue;
      if (!world_.over() && !world_.engine().reached(id, point)) {
        world_.report("U1", id, "the point that the run was to stop at", "the run went idle first");
      }
      return;
    }
  }

  void evict_from_store(const EvictStep& step, std::span<const TokenId> tokens) {
    std::vector<ObjectKey> gone;
    const auto ranks = static_cast<std::uint32_t>(scenario_.ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      if (step.rank && step.rank->value() != r) continue;
      if (step.at) {
        if (auto key = world_.object_key(step.component, RankId{r}, {}, tokens, *step.at)) {
          gone.push_back(std::move(*key));
        }
        continue;
      }
      std::int64_t wanted = step.count.value_or(0);
      const std::string middle = "/" + std::string(name(step.component)) + "/";
      for (ObjectKey& key : world_.store().keys()) {
        if (wanted == 0) break;
        if (key.find(middle) == std::string::npos || rank_of(key) != RankId{r}) continue;
        gone.push_back(std::move(key));
        --wanted;
      }
    }
    world_.store().remove(gone);
  }

  Result<void> submit(const std::string& request, std::vector<TokenId> prompt, Tokens decode,
                      RequestNamespace names) {
    if (prompt.empty())
      return Error{"request \"" + request + "\": expected a prompt of at least one token"};
    const std::int64_t vocab = world_.model().vocab();
    for (TokenId token : prompt) {
      if (token.value() >= vocab) {
        return Error{"request \"" + request + "\": token " + std::to_string(token.value()) +
                     " is outside the vocabulary of " + std::to_string(vocab)};
      }
    }
    world_.submit(request, {std::move(prompt), decode, std::move(names)});
    return {};
  }

  Result<std::vector<TokenId>> resolve(const std::string& name) {
    const PromptSpec& spec = scenario_.prompts.at(name);
    std::vector<TokenId> tokens;
    if (spec.random) append(tokens, *spec.random);
    if (spec.tokens) tokens = *spec.tokens;
    if (spec.from) {
      auto base = resolve(*spec.from);
      if (!base) return base.error();
      tokens = std::move(*base);
    }
    if (spec.output_of) {
      const auto id = world_.find(*spec.output_of);
      if (!id || !world_.has_ended(*id)) {
        return Error{"/prompts/" + name + "/output_of: request \"" + *spec.output_of +
                     "\" has not ended"};
      }
      tokens = world_.tokens_of(*id);
    }
    if (spec.take) {
      if (spec.take->index() > tokens.size()) {
        return Error{"/prompts/" + name + "/take: expected at most " +
                     std::to_string(tokens.size()) + ", found " +
                     std::to_string(spec.take->value())};
      }
      tokens.resize(spec.take->index());
    }
    for (const RandomTokens& more : spec.then) append(tokens, more);
    return tokens;
  }

  void append(std::vector<TokenId>& tokens, const RandomTokens& random) const {
    const auto range = static_cast<std::uint64_t>(world_.model().vocab() - 1);
    SplitMix64 stream(random.seed);
    for (Tokens i{0}; i < random.count; ++i) {
      tokens.emplace_back(static_cast<std::uint32_t>(1 + stream.below(range)));
    }
  }

  const Scenario& scenario_;
  World& world_;
  std::vector<Step>* taken_;  // may be null
  std::map<RequestId, engine::Point> held_;
};

}  // namespace

Result<RunResult> run_scenario(const Scenario& scenario, const RunOptions& options) {
  auto world = World::make(world_config(scenario, options));
  if (!world) return world.error();
  ScenarioRun run(scenario, **world, options.taken);
  std::uint64_t done = 0;
  for (const Step& step : scenario.steps) {
    if ((*world)->over()) break;
    if (const Result<void> taken = run.take(step); !taken) {
      return Error{"/steps/" + std::to_string(done) + ": " + taken.error().message};
    }
    ++done;
    if (options.progress) options.progress(done, scenario.steps.size());
  }
  if ((*world)->refusal()) return *(*world)->refusal();
  RunResult result = (*world)->finish(scenario.name);
  judge_expectations(scenario.expect ? &*scenario.expect : nullptr, (*world)->events_matched(),
                     result);
  return result;
}

}  // namespace lockstep::sim
