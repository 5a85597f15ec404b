#include "model/config.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "model/presets.h"

namespace lockstep::model {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 8;
constexpr std::size_t kMaxLayers = 512;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 30;
constexpr std::int64_t kMaxVocab = std::int64_t{1} << 30;
constexpr std::int64_t kMaxConvWidth = 64;

struct MixerName {
  std::string_view name;
  Mixer mixer;
};
constexpr MixerName kMixers[] = {
    {"full", Mixer::full}, {"swa", Mixer::swa}, {"rec", Mixer::recurrent}};

std::string_view mixer_name(Mixer mixer) {
  for (const MixerName& entry : kMixers) {
    if (entry.mixer == mixer) return entry.name;
  }
  return "?";
}

Result<Mixer> parse_mixer(const std::string& name, const std::string& where) {
  std::string expected;
  for (const MixerName& entry : kMixers) {
    if (entry.name == name) return entry.mixer;
    expected += (expected.empty() ? "\"" : ", \"") + std::string(entry.name) + "\"";
  }
  return Error{where + ": unknown layer \"" + name + "\", expected one of " + expected};
}

// Reads the members of one object; remembers the first error, so that a caller lists its fields and
// then asks.
class Fields {
 public:
  Fields(const Json& object, std::string source) : object_(object), source_(std::move(source)) {}

  void number(const char* key, std::int64_t low, std::int64_t high, std::int64_t& value) {
    const Json* member = find(key);
    if (member == nullptr) return;
    if (!member->is_number_integer() || *member < low || *member > high) {
      return fail(key, member->dump(),
                  "an integer from " + std::to_string(low) + " to " + std::to_string(high));
    }
    value = member->get<std::int64_t>();
  }

  void boolean(const char* key, bool& value) {
    const Json* member = find(key);
    if (member == nullptr) return;
    if (!member->is_boolean()) return fail(key, member->dump(), "true or false");
    value = member->get<bool>();
  }

  void text(const char* key, std::string& value) {
    const Json* member = find(key);
    if (member == nullptr) return;
    if (!member->is_string()) return fail(key, member->dump(), "a string");
    value = member->get<std::string>();
  }

  void texts(const char* key, std::vector<std::string>& values) {
    const Json* member = find(key);
    if (member == nullptr) return;
    const bool strings =
        member->is_array() &&
        std::all_of(member->begin(), member->end(), [](const Json& e) { return e.is_string(); });
    if (!strings) return fail(key, member->dump(), "an array of strings");
    values = member->get<std::vector<std::string>>();
  }

  // After the last field: the first error, or the first member that no field asked for.
  Result<void> finish() const {
    if (error_) return *error_;
    for (const auto& [key, value] : object_.items()) {
      if (known_.count(key) == 0) return Error{source_ + ": /" + key + ": unknown key"};
    }
    return {};
  }

 private:
  const Json* find(const char* key) {
    known_.insert(key);
    const auto member = object_.find(key);
    return member == object_.end() ? nullptr : &*member;
  }

  void fail(const char* key, const std::string& found, const std::string& expected) {
    if (error_) return;
    error_ =
        Error{source_ + ": /" + key + ": found " + found.substr(0, 80) + ", expected " + expected};
  }

  const Json& object_;
  std::string source_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

// Parses `text`, refusing what nlohmann lets through: duplicate keys and deep nesting.
Result<Json> parse_object(std::string_view text, const std::string& source) {
  std::vector<std::set<std::string>> open;
  std::string refused;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (static_cast<std::size_t>(depth) > kMaxDepth) refused = "nested deeper than 8 levels";
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second) {
      refused = "duplicate key \"" + value.get<std::string>() + "\"";
    }
    return refused.empty();
  };
  try {
    Json json = Json::parse(text, watch);
    if (!refused.empty()) return Error{source + ": " + refused};
    if (!json.is_object()) return Error{source + ": expected a JSON object"};
    return json;
  } catch (const Json::exception& failure) {
    return Error{source + ": not JSON: " + failure.what()};
  }
}

Result<std::vector<Mixer>> parse_mixers(const std::vector<std::string>& names,
                                        const std::string& source) {
  std::vector<Mixer> mixers;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Result<Mixer> mixer = parse_mixer(names[i], source + ": /layers/" + std::to_string(i));
    if (!mixer) return mixer.error();
    mixers.push_back(*mixer);
  }
  return mixers;
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return Error{path + ": cannot read this model file"};
  return text.str();
}

Result<ModelConfig> named_config(const ModelSpec& spec) {
  std::string known;
  for (const Preset& preset : presets()) {
    if (preset.name == spec.preset) return parse_model_config(preset.json, spec.preset);
    known += " " + std::string(preset.name);
  }
  if (spec.preset.find(".json") != std::string::npos) {
    const Result<std::string> text = read_file(spec.preset);
    return text ? parse_model_config(*text, spec.preset) : Result<ModelConfig>(text.error());
  }
  const std::string where = spec.source.empty() ? "model" : spec.source;
  return Error{where + ": unknown preset \"" + spec.preset + "\", expected a .json file or one of" +
               known};
}

Result<void> check_range(const ModelConfig& config, const char* what, std::int64_t value,
                         std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return Error{"model " + config.name + ": " + what + " " + std::to_string(value) + ", expected " +
               std::to_string(low) + " to " + std::to_string(high)};
}

Result<void> check_config(const ModelConfig& config) {
  if (config.layers.empty() || config.layers.size() > kMaxLayers) {
    return Error{"model " + config.name + ": " + std::to_string(config.layers.size()) +
                 " layers, expected 1 to " + std::to_string(kMaxLayers)};
  }
  if (std::count(config.layers.begin(), config.layers.end(), Mixer::full) == 0) {
    return Error{"model " + config.name +
                 ": no \"full\" layer; the cache names every prefix by its FULL pages"};
  }
  struct Range {
    const char* what;
    std::int64_t value;
    std::int64_t low;
    std::int64_t high;
  };
  const Range ranges[] = {
      {"window", config.window.value(), 1, kMaxTokens},
      {"state_chunk", config.state_chunk.value(), 1, kMaxTokens},
      {"vocab", config.vocab, 2, kMaxVocab},
      {"conv_kernel", config.conv_width, 1, kMaxConvWidth},
  };
  for (const Range& range : ranges) {
    const Result<void> good = check_range(config, range.what, range.value, range.low, range.high);
    if (!good) return good;
  }
  return {};
}

void merge_state(const ModelSpec& spec, StateProperties& state) {
  const StateProperties plain;
  if (spec.kv_scale) state.kv_scale = true;
  if (spec.virtual_slots) state.virtual_slots = true;
  if (spec.state_dtype != plain.state_dtype) state.state_dtype = spec.state_dtype;
  if (!spec.extra_slot_state.empty()) state.extra_slot_state = spec.extra_slot_state;
  if (!spec.contiguous_rows) state.contiguous_rows = false;
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view text, std::string_view source) {
  const std::string where(source);
  const Result<Json> json = parse_object(text, where);
  if (!json) return json.error();

  ModelConfig config;
  config.name = where;
  std::string model_type;
  std::vector<std::string> layers;
  std::int64_t window = 1;
  std::int64_t state_chunk = 1;
  Fields fields(*json, where);
  fields.text("model_type", model_type);
  fields.texts("layers", layers);
  fields.number("sliding_window", 1, kMaxTokens, window);
  fields.number("state_chunk", 1, kMaxTokens, state_chunk);
  fields.number("vocab_size", 2, kMaxVocab, config.vocab);
  fields.number("conv_kernel", 1, kMaxConvWidth, config.conv_width);
  fields.boolean("kv_scale", config.state.kv_scale);
  fields.boolean("virtual_slots", config.state.virtual_slots);
  fields.text("state_dtype", config.state.state_dtype);
  fields.texts("extra_slot_state", config.state.extra_slot_state);
  fields.boolean("contiguous_rows", config.state.contiguous_rows);
  if (const Result<void> good = fields.finish(); !good) return good.error();
  if (model_type != "fingerprint") {
    return Error{where + ": /model_type: found \"" + model_type + "\", expected \"fingerprint\""};
  }
  Result<std::vector<Mixer>> mixers = parse_mixers(layers, where);
  if (!mixers) return mixers.error();
  config.layers = std::move(*mixers);
  config.window = Tokens{window};
  config.state_chunk = Tokens{state_chunk};
  if (const Result<void> good = check_config(config); !good) return good.error();
  return config;
}

Result<ModelConfig> resolve_model_config(const ModelSpec& spec) {
  Result<ModelConfig> config = named_config(spec);
  if (!config) return config;
  const std::string where = spec.source.empty() ? "model " + spec.preset : spec.source;
  if (spec.layers) {
    Result<std::vector<Mixer>> mixers = parse_mixers(*spec.layers, where);
    if (!mixers) return mixers.error();
    config->layers = std::move(*mixers);
  }
  if (spec.window) config->window = *spec.window;
  if (spec.state_chunk) config->state_chunk = *spec.state_chunk;
  if (spec.vocab) config->vocab = *spec.vocab;
  merge_state(spec, config->state);
  if (const Result<void> good = check_config(*config); !good) return good.error();
  return config;
}

std::string describe(const ModelConfig& config) {
  std::string text = "fingerprint-1 layers=";
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (i > 0) text += ",";
    text += mixer_name(config.layers[i]);
  }
  text += " window=" + std::to_string(config.window.value()) +
          " state_chunk=" + std::to_string(config.state_chunk.value()) +
          " vocab=" + std::to_string(config.vocab) +
          " conv_kernel=" + std::to_string(config.conv_width);
  return text;
}

}  // namespace lockstep::model
