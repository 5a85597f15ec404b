#include "sim/rank_host.h"

#include <optional>

namespace lockstep::sim {

namespace {

bool needs(const model::Model& model, Component component) {
  const Geometry& geometry = model.geometry();
  switch (component) {
    case Component::full:
      return geometry.has_full;
    case Component::swa:
      return geometry.has_swa;
    case Component::mamba:
      return geometry.has_mamba;
  }
  return false;
}

Rows capacity(const CacheConfig& cache, Component component) {
  switch (component) {
    case Component::full:
      return cache.full_pages;
    case Component::swa:
      return cache.swa_pages;
    case Component::mamba:
      return cache.mamba_slots;
  }
  return Rows{0};
}

LinkerConfig linker_config(const RankHostConfig& config, const std::vector<PoolSpec>& pools,
                           const model::Model& model) {
  return {config.rank,  config.ranks,        config.geometry,
          config.cache, model.fingerprint(), layout_fingerprint(pools)};
}

}  // namespace

Result<std::vector<PoolSpec>> plan_pools(const model::Model& model, const model::ModelSpec& spec,
                                         const CacheConfig& cache) {
  const bool descending = cache.object_order == ObjectOrder::descending;
  std::vector<PoolSpec> pools;
  for (Component component : kComponents) {
    if (!needs(model, component)) continue;
    Tokens page = component == Component::mamba ? Tokens{1} : cache.page;
    if (component == Component::swa && spec.swa_page) page = *spec.swa_page;
    pools.push_back({model.layout(component, page, descending), page, capacity(cache, component)});
  }
  DeclaredState declared = model.declared_state();
  declared.geometry.page = cache.page;
  declared.geometry.track_interval = cache.track_interval;
  if (const Result<void> checked = check_pools(declared, pools); !checked) return checked.error();
  return pools;
}

std::string layout_fingerprint(const std::vector<PoolSpec>& pools) {
  std::string text;
  for (const PoolSpec& pool : pools) {
    text += std::string(name(pool.layout.component)) + " page " + std::to_string(pool.page.value());
    for (const LayerPart& part : pool.layout.parts) {
      text += " " + std::to_string(part.layer.value()) + ":" + std::string(name(part.part)) + ":" +
              std::to_string(part.offset.value()) + "+" + std::to_string(part.size.value());
    }
    text += ";";
  }
  return text;
}

RankHost::RankHost(const RankHostConfig& config, const std::vector<PoolSpec>& pools,
                   Accelerator& accelerator, const model::Model& model, const engine::Parts& parts,
                   Timers& timers, Store& store, EventSink& sink, AllocationGate* gate,
                   RankReports reports)
    : schedule_(make_schedule(config.schedule, config.seed, config.rank)),
      races_(config.watch == Watch::races
                 ? std::make_unique<RaceDetector>(pools, std::move(reports.race))
                 : nullptr),
      accesses_(config.watch == Watch::accesses
                    ? std::make_unique<AccessCheck>(std::move(reports.undeclared_write))
                    : nullptr),
      device_(make_device(config, timers, accelerator)),
      pools_(*device_, sink, config.rank, pools),
      linker_(
          parts.linker(linker_config(config, pools, model), *device_, pools_, store, sink, gate)),
      executor_(parts.executor(model, *device_, pools_, config.cache.page)) {
  if (accesses_ != nullptr) accesses_->watch(pools_);
}

std::unique_ptr<Device> RankHost::make_device(const RankHostConfig& config, Timers& timers,
                                              Accelerator& accelerator) {
  if (config.free_running) {
    auto device = std::make_unique<FreeRunningDevice>(accelerator);
    free_ = device.get();
    return device;
  }
  auto device = std::make_unique<SteppedDevice>(timers, CostModel{}, hooks(), &accelerator);
  stepped_ = device.get();
  return device;
}

SteppedHooks RankHost::hooks() const {
  if (accesses_ != nullptr) return {schedule_.get(), accesses_.get()};
  return {schedule_.get(), races_.get()};
}

}  // namespace lockstep::sim
