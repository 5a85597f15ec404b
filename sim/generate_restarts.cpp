// What a generated scenario's engine comes back with: another page size, model or policy.
#include <algorithm>

#include "sim/generate_parts.h"

namespace lockstep::sim {

namespace {

constexpr std::array kOtherPages{std::int64_t{1}, std::int64_t{2}, std::int64_t{4},
                                 std::int64_t{8}};

class Restarts {
 public:
  Restarts(Draw draw, const Scenario& scenario) : draw_(draw), scenario_(scenario) {}

  void change(RestartStep& step) {
    // Another model finds nothing of what is stored, and neither do other pages.
    if (draw_.one_in(3)) step.model = other_model();
    if (!step.model || draw_.one_in(2)) step.cache = other_cache();
  }

 private:
  model::ModelSpec other_model() {
    model::ModelSpec model = scenario_.model;
    model.window = *model.window + Tokens{draw_.between(1, scenario_.cache.page.value())};
    return model;
  }

  CacheConfig other_cache() {
    CacheConfig cache = scenario_.cache;
    if (draw_.one_in(2)) cache.page = other_page();
    // As many tokens as before, and a page more for what lies across two.
    const auto rows = [&](Rows old) {
      const std::int64_t tokens = old.value() * scenario_.cache.page.value();
      return Rows{tokens / cache.page.value() + 2};
    };
    cache.full_pages = rows(cache.full_pages);
    cache.swa_pages = rows(cache.swa_pages);
    cache.track_interval = cache.page * draw_.between(1, 3);
    if (draw_.one_in(2)) cache.max_running = draw_.between(1, 3);
    if (draw_.one_in(2)) cache.ahead = draw_.between(0, 1);
    if (draw_.one_in(2)) {
      cache.publish = draw_.one_in(2) ? PublishPolicy::after_load : PublishPolicy::at_commit;
    }
    return cache;
  }

  // One of page and grid divides the other (semantics 8).
  Tokens other_page() {
    const std::int64_t chunk = scenario_.model.state_chunk->value();
    std::vector<std::int64_t> fitting{scenario_.cache.page.value()};
    for (std::int64_t page : kOtherPages) {
      if (page % chunk == 0 || chunk % page == 0) fitting.push_back(page);
    }
    return Tokens{draw_.of(fitting)};
  }

  Draw draw_;
  const Scenario& scenario_;
};

}  // namespace

void draw_restarts(const FeatureSet& features, Draw draw, Scenario& scenario) {
  if (!has(features, Feature::restart_changed)) return;
  Restarts restarts(draw, scenario);
  for (Step& step : scenario.steps) {
    if (auto* restart = std::get_if<RestartStep>(&step); restart != nullptr && restart->engine) {
      restarts.change(*restart);
    }
  }
}

}  // namespace lockstep::sim
