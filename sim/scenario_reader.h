// Reading and writing scenarios (JSON, version 1). Every error names the source, the
// JSON pointer, what was expected and what was found, and nothing of a scenario with an error is
// used:
//   scenarios/x.json: /cache/page: expected an integer from 1 to 16777216, found "a"
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "core/result.h"
#include "sim/scenario.h"

namespace lockstep::sim {

// Files over 64 MiB are refused.
Result<Scenario> read_scenario_file(const std::string& path);
Result<Scenario> parse_scenario(std::string_view text, const std::string& source);

// The scenario with every default written out; parsing it from the same source gives an equal
// value.
std::string write_scenario(const Scenario& scenario);

// JSON Schema (draft-07) of scenario version 1: scenarios/schema.json.
std::string scenario_schema();

// A model object, or the name of a preset as a JSON string.
Result<model::ModelSpec> parse_model_spec(std::string_view text, const std::string& source);

// A scenario's cache object with every default written out.
Json cache_json(const CacheConfig& cache);

// Applies one setting "key=value" of the cache object to `cache` and returns the key. `source`
// names where it was given.
Result<std::string> set_cache_key(std::string_view setting, const std::string& source,
                                  CacheConfig& cache);

}  // namespace lockstep::sim
