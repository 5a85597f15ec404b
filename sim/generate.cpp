// Features, sizes and policies of a generated scenario; what happens in it is
// sim/generate_workload.cpp's, what goes wrong sim/generate_faults.cpp's.
#include "sim/generate.h"

#include <algorithm>

#include "model/config.h"
#include "sim/draw.h"
#include "sim/generate_parts.h"

namespace lockstep::sim {

namespace {

struct NamedProfile {
  std::string_view name;
  Profile profile;
};
constexpr std::array kProfiles{
    NamedProfile{"smoke", Profile::smoke}, NamedProfile{"nightly", Profile::nightly},
    NamedProfile{"ranks", Profile::ranks}, NamedProfile{"pressure", Profile::pressure},
    NamedProfile{"races", Profile::races}, NamedProfile{"numeric", Profile::numeric}};

// The settings that this version runs; the world refuses any other.
constexpr std::array kAhead{std::int64_t{1}};
constexpr std::array kPublish{PublishPolicy::at_commit, PublishPolicy::after_load};

// Besides fifo.
constexpr std::array kModes{ScheduleMode::random, ScheduleMode::priority,
                            ScheduleMode::depth_first};

constexpr std::array kPages{std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{4},
                            std::int64_t{5}, std::int64_t{8}, std::int64_t{16}};

// The recurrent layers that a preset has, each kind once.
std::vector<std::string> recurrent_mixers(const std::string& preset) {
  model::ModelSpec spec;
  spec.preset = preset;
  const Result<model::ModelConfig> config = model::resolve_model_config(spec);
  std::vector<std::string> names;
  for (std::uint32_t i = 0; config && i < config->layers.size(); ++i) {
    const model::Mixer mixer = config->layers[i];
    if (mixer == model::Mixer::full || mixer == model::Mixer::swa) continue;
    std::string name(model::mixer_name(mixer));
    if (std::ranges::count(names, name) == 0) names.push_back(std::move(name));
  }
  return names;
}

FeatureSet forced_on(Profile profile) {
  FeatureSet features;
  const auto force = [&](std::initializer_list<Feature> list) {
    for (Feature feature : list) features.set(static_cast<std::size_t>(feature));
  };
  if (profile == Profile::ranks) force({Feature::many_ranks});
  if (profile == Profile::races) force({Feature::jitter, Feature::free_schedule});
  return features;
}

// Each feature with probability 1/2, at least one; under pressure at least one pool is tight.
FeatureSet draw_features(Profile profile, Draw draw) {
  FeatureSet features;
  while (features.none()) {
    for (std::size_t i = 0; i < kFeatureCount; ++i) features.set(i, draw.one_in(2));
    // Where everything is full or absent, little else can happen.
    for (Feature rare : {Feature::full_store, Feature::no_swa, Feature::no_recurrence}) {
      if (!draw.one_in(4)) features.reset(static_cast<std::size_t>(rare));
    }
  }
  if (profile == Profile::pressure) {
    constexpr std::array kPools{Feature::tight_full, Feature::tight_swa, Feature::tight_mamba};
    features.set(static_cast<std::size_t>(draw.of(kPools)));
  }
  return features | forced_on(profile);
}

class Sizes {
 public:
  Sizes(const FeatureSet& features, Draw draw) : features_(features), draw_(draw) {}

  void draw_model(Scenario& scenario) {
    const std::int64_t page = draw_.of(kPages);
    scenario.cache.page = Tokens{page};
    scenario.model.state_chunk =
        Tokens{wants(Feature::grid_over_page) ? page * draw_.between(2, 4) : divisor(page)};
    scenario.model.window =
        Tokens{wants(Feature::page_over_window) ? draw_.between(1, page)
                                                : draw_.between(page + 1, 4 * page + 2)};
    scenario.model.layers = layers(recurrent_mixers(scenario.model.preset));
  }

  void draw_policies(Scenario& scenario) {
    CacheConfig& cache = scenario.cache;
    cache.track_interval = cache.page * draw_.between(1, 3);
    cache.prefill_chunk =
        wants(Feature::small_chunk) ? Tokens{draw_.between(1, 3 * page(cache))} : Tokens{2048};
    cache.max_running = wants(Feature::many_running) ? draw_.between(2, 4) : 1;
    if (wants(Feature::ahead)) cache.ahead = draw_.of(kAhead);
    if (wants(Feature::publish_after_load)) cache.publish = draw_.of(kPublish);
    if (wants(Feature::checkpoints_every)) cache.checkpoints = CheckpointPolicy::every;
    if (wants(Feature::overlap_barrier)) cache.overlap = OverlapPolicy::barrier;
    if (wants(Feature::reoffload_never)) cache.reoffload = ReoffloadPolicy::never;
    if (wants(Feature::objects_descending)) cache.object_order = ObjectOrder::descending;
    scenario.ranks = wants(Feature::many_ranks) ? (draw_.one_in(4) ? 4 : 2) : 1;
    scenario.schedule.jitter = wants(Feature::jitter) ? 0.5 : 0;
    if (wants(Feature::free_schedule)) {
      scenario.schedule.mode = draw_.of(kModes);
      scenario.schedule.depth = draw_.between(1, 3);
    }
    scenario.store.latency_us = wants(Feature::slow_store) ? 2000 : 50;
    scenario.store.capacity_mib = wants(Feature::full_store) ? 0 : 256;
    for (std::int64_t left = wants(Feature::speculation) ? draw_.between(1, 3) : 0; left > 0;
         --left) {
      const std::int64_t draft = draw_.between(1, 4);
      scenario.speculation.push_back({Tokens{draft}, Tokens{draw_.between(0, draft)}});
    }
    // Long enough for a read that nothing delays.
    if (wants(Feature::fault_load) && draw_.one_in(2)) {
      scenario.store.lease_us = 4 * scenario.store.latency_us;
    }
  }

  // Needs to know what the requests need.
  void draw_pools(Scenario& scenario, const Needs& needs) {
    CacheConfig& cache = scenario.cache;
    cache.full_pages = rows(needs.full_pages, wants(Feature::tight_full));
    cache.swa_pages = rows(needs.swa_pages, wants(Feature::tight_swa));
    cache.mamba_slots = Rows{wants(Feature::tight_mamba) ? draw_.between(1, 4) : 24};
  }

 private:
  bool wants(Feature feature) const { return has(features_, feature); }
  static std::int64_t page(const CacheConfig& cache) { return cache.page.value(); }

  std::int64_t divisor(std::int64_t page) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= page; ++d) {
      if (page % d == 0) divisors.push_back(d);
    }
    return draw_.of(divisors);
  }

  std::vector<std::string> layers(const std::vector<std::string>& recurrent) {
    std::vector<std::string> all;
    if (!wants(Feature::no_swa)) all.emplace_back("swa");
    all.emplace_back("full");
    if (!wants(Feature::no_recurrence)) all.insert(all.end(), recurrent.begin(), recurrent.end());
    if (draw_.one_in(4)) all.push_back(all.front());
    return all;
  }

  // Just what the largest request needs or a little more; rarely less, so that it is refused.
  Rows rows(Rows needed, bool tight) {
    const std::int64_t need = std::max<std::int64_t>(1, needed.value());
    if (!tight) return Rows{6 * need + 8};
    if (draw_.one_in(8)) return Rows{draw_.between(1, need)};
    return Rows{need + draw_.between(0, std::max<std::int64_t>(1, need / 2))};
  }

  const FeatureSet& features_;
  Draw draw_;
};

}  // namespace

std::optional<Profile> find_profile(std::string_view name) {
  for (const NamedProfile& named : kProfiles) {
    if (named.name == name) return named.profile;
  }
  return std::nullopt;
}

std::vector<std::string_view> profile_names() {
  std::vector<std::string_view> names;
  for (const NamedProfile& named : kProfiles) names.push_back(named.name);
  return names;
}

RandomSources RandomSources::of(std::uint64_t seed) {
  return {substream(seed, "generate.features"), substream(seed, "generate.sizes"),
          substream(seed, "generate.workload"), substream(seed, "generate.faults"),
          substream(seed, "generate.restarts")};
}

Scenario generate(const GeneratorOptions& options, std::uint64_t seed) {
  return generate(options, seed, RandomSources::of(seed));
}

Scenario generate(const GeneratorOptions& options, std::uint64_t seed,
                  const RandomSources& sources) {
  const FeatureSet features = draw_features(options.profile, Draw(sources.features));
  Scenario scenario;
  scenario.name = "seed-" + std::to_string(seed);
  scenario.seed = seed;
  scenario.model.preset = options.preset;
  Sizes sizes(features, Draw(sources.sizes));
  sizes.draw_model(scenario);
  sizes.draw_policies(scenario);
  draw_workload(features, options.profile, Draw(sources.workload), scenario);
  sizes.draw_pools(scenario, needs_of(scenario));
  draw_restarts(features, Draw(sources.restarts), scenario);
  draw_faults(features, Draw(sources.faults), scenario);
  return scenario;
}

}  // namespace lockstep::sim
