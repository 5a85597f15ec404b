#include "scenario_draw.h"

#include <algorithm>
#include <ostream>

#include <rapidcheck.h>

#include "sim/scenario_check.h"
#include "sim/scenario_reader.h"
#include "sim/scenario_repair.h"
#include "sim/shrink_knobs.h"

namespace lockstep::sim {

// How RapidCheck prints one.
static void showValue(const Scenario& scenario, std::ostream& out) {
  out << write_scenario(scenario);
}

}  // namespace lockstep::sim

namespace lockstep::testing {

namespace {

using sim::Scenario;

class Candidates {
 public:
  explicit Candidates(const Scenario& scenario) : scenario_(scenario) {}

  std::vector<Scenario> collect() {
    drop_chunks(&Scenario::steps);
    drop_chunks(&Scenario::faults);
    for (const auto& change : sim::simplifications_of(scenario_)) {
      Scenario candidate = scenario_;
      change(candidate);
      add(std::move(candidate));
    }
    for (const sim::Knob& knob : sim::knobs_of(scenario_)) {
      const std::int64_t now = knob.get(scenario_);
      for (const std::int64_t number : {knob.low, knob.low + (now - knob.low) / 2, now - 1}) {
        if (number < knob.low || number >= now) continue;
        Scenario candidate = scenario_;
        knob.set(candidate, number);
        add(std::move(candidate));
      }
    }
    return std::move(candidates_);
  }

 private:
  template <class T>
  void drop_chunks(std::vector<T> Scenario::* list) {
    const std::size_t count = (scenario_.*list).size();
    for (std::size_t size = (count + 1) / 2; size > 0; size = size == 1 ? 0 : (size + 1) / 2) {
      for (std::size_t begin = 0; begin < count; begin += size) {
        Scenario candidate = scenario_;
        auto& items = candidate.*list;
        const auto first = items.begin() + static_cast<std::ptrdiff_t>(begin);
        items.erase(first, first + static_cast<std::ptrdiff_t>(std::min(size, count - begin)));
        add(std::move(candidate));
      }
    }
  }

  void add(Scenario candidate) {
    sim::drop_dangling(candidate);
    if (candidate == scenario_ || !sim::check_references(candidate)) return;
    candidates_.push_back(std::move(candidate));
  }

  const Scenario& scenario_;
  std::vector<Scenario> candidates_;
};

}  // namespace

std::vector<Scenario> simpler(const Scenario& scenario) {
  return Candidates(scenario).collect();
}

Scenario draw_scenario(const sim::GeneratorOptions& options) {
  const rc::Gen<Scenario> any([options](const rc::Random& random, int) {
    constexpr int kSeedBits = 53;
    const std::uint64_t seed = rc::Random(random).next() >> (64 - kSeedBits);
    return rc::shrinkable::shrinkRecur(sim::generate(options, seed), [](const Scenario& scenario) {
      return rc::seq::fromContainer(simpler(scenario));
    });
  });
  return *any;
}

}  // namespace lockstep::testing
