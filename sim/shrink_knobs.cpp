#include "sim/shrink_knobs.h"

namespace lockstep::sim {

namespace {

using Change = std::function<void(Scenario&)>;

template <class V>
std::int64_t plain(const V& value) {
  if constexpr (std::integral<V>) {
    return static_cast<std::int64_t>(value);
  } else {
    return static_cast<std::int64_t>(value.value());
  }
}

template <class V>
void assign(V& place, std::int64_t number) {
  if constexpr (std::integral<V>) {
    place = static_cast<V>(number);
  } else {
    place = V{static_cast<decltype(place.value())>(number)};
  }
}

// A knob at `place`, a function from Scenario& to the number.
template <class Place>
Knob knob(Place place, std::int64_t low) {
  return {[place](const Scenario& scenario) {
            return plain(place(const_cast<Scenario&>(scenario)));  // read only
          },
          [place](Scenario& scenario, std::int64_t number) { assign(place(scenario), number); },
          low};
}

class Collector {
 public:
  explicit Collector(const Scenario& scenario) : scenario_(scenario) {}

  std::vector<Knob> collect() {
    collect_sizes();
    for (const auto& [name, prompt] : scenario_.prompts) collect_prompt(name, prompt);
    for (std::size_t i = 0; i < scenario_.steps.size(); ++i) {
      std::visit([&](const auto& step) { collect_step(i, step); }, scenario_.steps[i]);
    }
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) collect_fault(i);
    return std::move(knobs_);
  }

 private:
  template <class Place>
  void add(Place place, std::int64_t low) {
    knobs_.push_back(knob(place, low));
  }

  // What has its default is as simple as it gets.
  void collect_sizes() {
    const CacheConfig& cache = scenario_.cache;
    const CacheConfig plain_cache;
    add([](Scenario& s) -> auto& { return s.ranks; }, 1);
    add([](Scenario& s) -> auto& { return s.seed; }, 1);
    add([](Scenario& s) -> auto& { return s.cache.page; }, 1);
    if (cache.track_interval != plain_cache.track_interval)
      add([](Scenario& s) -> auto& { return s.cache.track_interval; }, 1);
    if (cache.prefill_chunk != plain_cache.prefill_chunk)
      add([](Scenario& s) -> auto& { return s.cache.prefill_chunk; }, 1);
    if (cache.full_pages != plain_cache.full_pages)
      add([](Scenario& s) -> auto& { return s.cache.full_pages; }, 1);
    if (cache.swa_pages != plain_cache.swa_pages)
      add([](Scenario& s) -> auto& { return s.cache.swa_pages; }, 1);
    if (cache.mamba_slots != plain_cache.mamba_slots)
      add([](Scenario& s) -> auto& { return s.cache.mamba_slots; }, 1);
    add([](Scenario& s) -> auto& { return s.cache.max_running; }, 1);
    if (scenario_.model.window) add([](Scenario& s) -> auto& { return *s.model.window; }, 1);
    if (scenario_.model.state_chunk)
      add([](Scenario& s) -> auto& { return *s.model.state_chunk; }, 1);
  }

  void collect_prompt(const std::string& name, const PromptSpec& prompt) {
    if (prompt.random) {
      add([name](Scenario& s) -> auto& { return s.prompts.at(name).random->count; }, 1);
    }
    if (prompt.take) add([name](Scenario& s) -> auto& { return *s.prompts.at(name).take; }, 1);
    for (std::size_t i = 0; i < prompt.then.size(); ++i) {
      add([name, i](Scenario& s) -> auto& { return s.prompts.at(name).then[i].count; }, 1);
    }
  }

  template <class T, class V>
  void add_of_step(std::size_t i, V T::* member, std::int64_t low) {
    add([i, member](Scenario& s) -> auto& { return std::get<T>(s.steps[i]).*member; }, low);
  }
  template <class T, class V>
  void add_of_step(std::size_t i, const T& step, std::optional<V> T::* member, std::int64_t low) {
    if (!(step.*member)) return;
    add([i, member](Scenario& s) -> auto& { return *(std::get<T>(s.steps[i]).*member); }, low);
  }

  void collect_step(std::size_t i, const SubmitStep&) { add_of_step(i, &SubmitStep::decode, 1); }
  void collect_step(std::size_t i, const RunStep& step) {
    add_of_step(i, step, &RunStep::steps, 1);
  }
  void collect_step(std::size_t i, const EvictStep& step) {
    add_of_step(i, step, &EvictStep::count, 1);
    add_of_step(i, step, &EvictStep::at, 1);
  }
  void collect_step(std::size_t i, const ForkStep& step) {
    add_of_step(i, &ForkStep::decode, 1);
    add_of_step(i, &ForkStep::at, 1);
    for (std::size_t k = 0; k < step.then.size(); ++k) {
      add([i, k](Scenario& s) -> auto& { return std::get<ForkStep>(s.steps[i]).then[k].count; }, 1);
    }
  }
  void collect_step(std::size_t i, const PickStep&) { add_of_step(i, &PickStep::number, 0); }
  template <class Other>
  void collect_step(std::size_t, const Other&) {}

  void collect_fault(std::size_t i) {
    if (scenario_.faults[i].nth) {
      add([i](Scenario& s) -> auto& { return *s.faults[i].nth; }, 1);
    }
    add([i](Scenario& s) -> auto& { return s.faults[i].action.number; }, 0);
  }

  const Scenario& scenario_;
  std::vector<Knob> knobs_;
};

template <class V>
void reset_cache(std::vector<Change>& changes, const Scenario& scenario, V CacheConfig::* member) {
  const V fallback = CacheConfig{}.*member;
  if (scenario.cache.*member == fallback) return;
  changes.emplace_back([member, fallback](Scenario& s) { s.cache.*member = fallback; });
}

void simplify_settings(std::vector<Change>& changes, const Scenario& scenario) {
  if (scenario.store != StoreSpec{}) changes.emplace_back([](Scenario& s) { s.store = {}; });
  if (scenario.schedule.jitter != 0 || scenario.schedule.mode != ScheduleMode::fifo) {
    changes.emplace_back([](Scenario& s) { s.schedule = {ScheduleMode::fifo, 2, 0}; });
  }
  for (std::size_t i = 0; i < scenario.speculation.size(); ++i) {
    changes.emplace_back([i](Scenario& s) {
      s.speculation.erase(s.speculation.begin() + static_cast<std::ptrdiff_t>(i));
    });
    const SpeculationStep& step = scenario.speculation[i];
    if (step.accept > Tokens{0}) {
      changes.emplace_back([i](Scenario& s) { s.speculation[i].accept -= Tokens{1}; });
    }
    if (step.draft > step.accept) {
      changes.emplace_back([i](Scenario& s) { s.speculation[i].draft -= Tokens{1}; });
    }
  }
  reset_cache(changes, scenario, &CacheConfig::ahead);
  reset_cache(changes, scenario, &CacheConfig::publish);
  reset_cache(changes, scenario, &CacheConfig::checkpoints);
  reset_cache(changes, scenario, &CacheConfig::overlap);
  reset_cache(changes, scenario, &CacheConfig::reoffload);
  reset_cache(changes, scenario, &CacheConfig::object_order);
  reset_cache(changes, scenario, &CacheConfig::max_running);
  reset_cache(changes, scenario, &CacheConfig::prefill_chunk);
  reset_cache(changes, scenario, &CacheConfig::track_interval);
  reset_cache(changes, scenario, &CacheConfig::full_pages);
  reset_cache(changes, scenario, &CacheConfig::swa_pages);
  reset_cache(changes, scenario, &CacheConfig::mamba_slots);
  if (scenario.model.layers) {
    for (std::size_t i = 0; i < scenario.model.layers->size(); ++i) {
      changes.emplace_back([i](Scenario& s) {
        s.model.layers->erase(s.model.layers->begin() + static_cast<std::ptrdiff_t>(i));
      });
    }
  }
}

void simplify_prompt(std::vector<Change>& changes, const std::string& name,
                     const PromptSpec& prompt, const Scenario& scenario) {
  for (std::size_t i = 0; i < prompt.then.size(); ++i) {
    changes.emplace_back([name, i](Scenario& s) {
      auto& then = s.prompts.at(name).then;
      then.erase(then.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }
  if (prompt.take) changes.emplace_back([name](Scenario& s) { s.prompts.at(name).take.reset(); });
  if (prompt.from) {  // the start itself in place of its name
    changes.emplace_back([name](Scenario& s) {
      PromptSpec merged = s.prompts.at(*s.prompts.at(name).from);
      const PromptSpec& old = s.prompts.at(name);
      if (!old.take) merged.then.insert(merged.then.end(), old.then.begin(), old.then.end());
      s.prompts.at(name) = merged;
    });
  }
  if (prompt.output_of) {  // what the request was asked, without its answer
    for (const Step& step : scenario.steps) {
      const auto* submit = std::get_if<SubmitStep>(&step);
      if (submit == nullptr || submit->request != *prompt.output_of) continue;
      changes.emplace_back([name, asked = submit->prompt](Scenario& s) {
        s.prompts.at(name).output_of.reset();
        s.prompts.at(name).from = asked;
      });
    }
  }
  for (const auto& [other, unused] : scenario.prompts) {  // two requests with one prompt
    if (other >= name) break;
    changes.emplace_back([name, other](Scenario& s) {
      for (Step& step : s.steps) {
        if (auto* submit = std::get_if<SubmitStep>(&step); submit && submit->prompt == name) {
          submit->prompt = other;
        }
      }
    });
  }
}

void simplify_step(std::vector<Change>& changes, std::size_t i, const Step& step) {
  const auto change = [&](auto member, const auto& concrete) {
    if (!(concrete.*member)) return;
    using Concrete = std::decay_t<decltype(concrete)>;
    changes.emplace_back(
        [i, member](Scenario& s) { (std::get<Concrete>(s.steps[i]).*member).reset(); });
  };
  if (const auto* submit = std::get_if<SubmitStep>(&step)) {
    change(&SubmitStep::extra_key, *submit);
    change(&SubmitStep::cache_salt, *submit);
  } else if (const auto* fork = std::get_if<ForkStep>(&step)) {
    change(&ForkStep::extra_key, *fork);
    change(&ForkStep::cache_salt, *fork);
    if (!fork->then.empty()) {
      changes.emplace_back([i](Scenario& s) { std::get<ForkStep>(s.steps[i]).then.clear(); });
    }
  } else if (const auto* evict = std::get_if<EvictStep>(&step)) {
    change(&EvictStep::rank, *evict);
  } else if (const auto* restart = std::get_if<RestartStep>(&step)) {
    change(&RestartStep::model, *restart);
    change(&RestartStep::cache, *restart);
  } else if (const auto* run = std::get_if<RunStep>(&step); run && run->steps) {
    changes.emplace_back([i](Scenario& s) {
      RunStep idle;
      idle.idle = true;
      s.steps[i] = idle;
    });
  }
}

void simplify_fault(std::vector<Change>& changes, std::size_t i, const FaultSpec& fault) {
  const auto change = [&](auto member) {
    if (!(fault.*member)) return;
    changes.emplace_back([i, member](Scenario& s) { (s.faults[i].*member).reset(); });
  };
  change(&FaultSpec::component);
  change(&FaultSpec::rank);
  change(&FaultSpec::request);
  change(&FaultSpec::layer);
  change(&FaultSpec::page);
  if (!fault.nth) changes.emplace_back([i](Scenario& s) { s.faults[i].nth = 1; });
}

}  // namespace

std::vector<Knob> knobs_of(const Scenario& scenario) {
  return Collector(scenario).collect();
}

std::vector<Change> simplifications_of(const Scenario& scenario) {
  std::vector<Change> changes;
  simplify_settings(changes, scenario);
  for (const auto& [name, prompt] : scenario.prompts) {
    simplify_prompt(changes, name, prompt, scenario);
  }
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    simplify_step(changes, i, scenario.steps[i]);
  }
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    simplify_fault(changes, i, scenario.faults[i]);
  }
  return changes;
}

}  // namespace lockstep::sim
