// What a scenario exercises, for swarm testing: each seed draws a subset of these, and a campaign
// reports how many pairs of them ran together.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <string_view>

#include "sim/scenario.h"

namespace lockstep::sim {

enum class Feature {
  shared_prompts,   // one prompt begins with a part of another
  repeated_prompt,  // two requests have the same prompt
  conversation,     // a prompt begins with all that a request said
  fork,
  extra_key,
  cache_salt,
  hold,
  cancel,
  retract,
  flush,
  evict_device,
  evict_store,
  restart_engine,
  restart_store,
  restart_changed,  // the engine comes back with another cache or model
  fault_load,
  fault_offload,
  fault_alloc,
  fault_lookup,
  fault_event,  // cancel, retract or flush, right after an event
  fault_evict,  // between two phases
  fault_shrink,
  fault_restart,  // between two steps
  many_ranks,
  many_running,
  tight_full,
  tight_swa,
  tight_mamba,
  small_chunk,  // a prompt takes several forwards
  page_over_window,
  grid_over_page,
  checkpoints_every,
  overlap_barrier,
  reoffload_never,
  objects_descending,
  publish_after_load,
  ahead,
  jitter,
  free_schedule,  // another mode than fifo
  no_swa,
  no_recurrence,
  slow_store,
  full_store,
  speculation,
};
inline constexpr std::size_t kFeatureCount = static_cast<std::size_t>(Feature::speculation) + 1;

using FeatureSet = std::bitset<kFeatureCount>;
inline bool has(const FeatureSet& set, Feature feature) {
  return set.test(static_cast<std::size_t>(feature));
}

std::string_view name(Feature feature);

// No scenario has both, by what the two mean.
bool exclude_each_other(Feature one, Feature other);

// Read off the scenario, so that it holds for written ones too. "Tight" pools are those that cannot
// hold twice what the largest request needs.
FeatureSet features_of(const Scenario& scenario);

}  // namespace lockstep::sim
