#include "sim/scenario_reader.h"

#include "sim/json_codec.h"
#include "sim/scenario_check.h"
#include "sim/scenario_fields.h"

namespace lockstep::sim {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;

const Codec<Scenario>& the_scenario_codec() {
  static const Codec<Scenario> codec = scenario_codec();
  return codec;
}

const Json* find_path(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json* at = &json;
  for (std::string_view key : keys) {
    if (at) at = at->find(key);
  }
  return at;
}

// A restart's "cache" names only what changes: reads it once more, onto the configuration that it
// changes. The first reading has found it correct.
void reread_cache(const Json* changes, const CacheConfig& base, RestartStep& restart) {
  if (!changes) return;
  ReadState state;
  restart.cache = base;
  const bool good = read_fields(cache_fields(), Cursor(*changes, state), *restart.cache);
  CHECK("scenario.cache_read_twice", good);
}

// Steps change what the step before left; faults come at any time and change the scenario's own.
void complete_restarts(const Json& json, Scenario& scenario) {
  CacheConfig current = scenario.cache;
  for (std::size_t i = 0; i < scenario.steps.size(); ++i) {
    auto* restart = std::get_if<RestartStep>(&scenario.steps[i]);
    if (!restart) continue;
    const Json& step = (*json.find("steps")->as<Json::Array>())[i];
    reread_cache(find_path(step, {"restart", "engine", "cache"}), current, *restart);
    if (restart->cache) current = *restart->cache;
  }
  for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
    if (!scenario.faults[i].restart) continue;
    const Json& fault = (*json.find("faults")->as<Json::Array>())[i];
    reread_cache(find_path(fault, {"do", "restart", "engine", "cache"}), scenario.cache,
                 *scenario.faults[i].restart);
  }
}

}  // namespace

Result<Scenario> read_scenario_file(const std::string& path) {
  const Result<std::string> text = read_text_file(path, kMaxFileBytes);
  if (!text) return text.error();
  return parse_scenario(*text, path);
}

Result<Scenario> parse_scenario(std::string_view text, const std::string& source) {
  const Result<Json> json = parse_json(text, source);
  if (!json) return json.error();
  ReadState state{source, {}};
  Scenario scenario;
  scenario.model.source = source + ": /model";  // if it is not given
  if (!the_scenario_codec().read(Cursor(*json, state), scenario)) return *state.error;
  complete_restarts(*json, scenario);
  if (const Result<void> names = check_references(scenario); !names) {
    return Error{source + ": " + names.error().message};
  }
  return scenario;
}

std::string write_scenario(const Scenario& scenario) {
  return to_pretty_text(the_scenario_codec().write(scenario));
}

std::string scenario_schema() {
  Json::Object schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
                      {"title", "Lockstep scenario, version 1"}};
  for (const JsonMember& member : *the_scenario_codec().schema.as<Json::Object>()) {
    schema.push_back(member);
  }
  return to_pretty_text(schema);
}

Result<model::ModelSpec> parse_model_spec(std::string_view text, const std::string& source) {
  const Result<Json> json = parse_json(text, source);
  if (!json) return json.error();
  ReadState state{source, {}};
  model::ModelSpec spec;
  if (!model_codec().read(Cursor(*json, state), spec)) return *state.error;
  return spec;
}

Json cache_json(const CacheConfig& cache) {
  return object(cache_fields()).write(cache);
}

Result<std::string> set_cache_key(std::string_view setting, const std::string& source,
                                  CacheConfig& cache) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    return Error{source + ": expected key=value, found \"" + std::string(setting) + "\""};
  }
  const std::string key(setting.substr(0, equals));
  const std::string value(setting.substr(equals + 1));
  // A word that is no JSON is a string: checkpoints=every.
  const Result<Json> parsed = parse_json(value, source);
  const Json json = Json::Object{{key, parsed ? *parsed : Json(value)}};
  ReadState state{source, {}};
  if (!read_fields(cache_fields(), Cursor(json, state), cache)) return *state.error;
  return key;
}

}  // namespace lockstep::sim
