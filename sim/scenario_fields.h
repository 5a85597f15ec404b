// The field tables of scenario version 1: the one place where a key's
// name, type, range, default and meaning are said.
#pragma once

#include "sim/json_codec.h"
#include "sim/scenario.h"

namespace lockstep::sim {

inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 24;

Codec<Scenario> scenario_codec();
std::vector<Field<CacheConfig>> cache_fields();
Codec<model::ModelSpec> model_codec();

// Parts, one .cpp per group.
Codec<Component> component_codec();
Codec<PromptSpec> prompt_codec();
Codec<std::vector<RandomTokens>> then_codec();
Codec<Step> step_codec();
Codec<RestartStep> restart_codec();
Codec<FaultSpec> fault_codec();
Codec<ExpectSpec> expect_codec();

}  // namespace lockstep::sim
