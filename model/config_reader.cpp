#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "model/config.h"

namespace lockstep::model {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDepth = 8;

// Reads the members of one object; remembers the first error, so that a caller lists its fields and
// then asks.
class Fields {
 public:
  Fields(const Json& object, std::string source) : object_(object), source_(std::move(source)) {}

  void number(const char* key, std::int64_t low, std::int64_t high, std::int64_t& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    const bool good = found->is_number_integer() && *found >= low && *found <= high;
    const std::string range = std::to_string(low) + " to " + std::to_string(high);
    if (expect(good, key, *found, "an integer from " + range)) value = found->get<std::int64_t>();
  }

  void real(const char* key, double low, double high, float& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    const bool good = found->is_number() && *found >= low && *found <= high;
    const std::string range = shortest(low) + " to " + shortest(high);
    if (expect(good, key, *found, "a number from " + range)) value = found->get<float>();
  }

  void boolean(const char* key, bool& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (expect(found->is_boolean(), key, *found, "true or false")) value = found->get<bool>();
  }

  void text(const char* key, std::string& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (expect(found->is_string(), key, *found, "a string")) value = found->get<std::string>();
  }

  void texts(const char* key, std::vector<std::string>& values) {
    const Json* found = find(key);
    if (found == nullptr) return;
    const bool strings = found->is_array() && std::ranges::all_of(*found, &Json::is_string);
    if (expect(strings, key, *found, "an array of strings")) {
      values = found->get<std::vector<std::string>>();
    }
  }

  // After the last field: the first error, or the first member that no field asked for.
  Result<void> finish() const {
    if (error_) return *error_;
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key)) return Error{source_ + ": /" + key + ": unknown key"};
    }
    return {};
  }

 private:
  const Json* find(const char* key) {
    known_.insert(key);
    const auto member = object_.find(key);
    return member == object_.end() ? nullptr : &*member;
  }

  bool expect(bool good, const char* key, const Json& found, const std::string& expected) {
    if (!good && !error_) {
      error_ = Error{source_ + ": /" + key + ": found " + found.dump().substr(0, 80) +
                     ", expected " + expected};
    }
    return good;
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

void read_state(Fields& fields, StateProperties& state) {
  fields.boolean("kv_scale", state.kv_scale);
  fields.boolean("virtual_slots", state.virtual_slots);
  fields.text("state_dtype", state.state_dtype);
  fields.texts("extra_slot_state", state.extra_slot_state);
  fields.boolean("contiguous_rows", state.contiguous_rows);
}

// The keys of Inkling's config.json for these sizes.
void read_shape(Fields& fields, DecoderShape& shape) {
  fields.number("hidden_size", 1, kMaxWidth, shape.hidden);
  fields.number("num_attention_heads", 1, kMaxWidth, shape.heads);
  fields.number("num_key_value_heads", 1, kMaxWidth, shape.kv_heads);
  fields.number("head_dim", 1, kMaxWidth, shape.head_dim);
  fields.number("intermediate_size", 1, kMaxWidth, shape.intermediate);
  fields.number("d_rel", 1, kMaxWidth, shape.relative_dim);
  fields.number("rel_extent", 1, kMaxTokens, shape.full_extent);
  fields.real("rms_norm_eps", 1e-12, 1.0, shape.norm_eps);
  fields.real("logits_mup_width_multiplier", 1e-6, 1e6, shape.logit_divisor);
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
  fields.number("sliding_window_size", 1, kMaxTokens, window);
  fields.number("state_chunk", 1, kMaxTokens, state_chunk);
  fields.number("vocab_size", 2, kMaxVocab, config.vocab);
  fields.number("conv_kernel_size", 1, kMaxConvWidth, config.conv_width);
  read_state(fields, config.state);
  if (model_type == "inkling") {
    config.arithmetic = Arithmetic::inkling;
    read_shape(fields, config.shape);
  } else if (model_type != "fingerprint") {
    return Error{where + ": /model_type: found \"" + model_type +
                 R"(", expected "fingerprint" or "inkling")"};
  }
  if (const Result<void> good = fields.finish(); !good) return good.error();
  config.window = Tokens{window};
  config.state_chunk = Tokens{state_chunk};
  Result<std::vector<Mixer>> mixers = parse_mixers(layers, config.arithmetic, where);
  if (!mixers) return mixers.error();
  config.layers = std::move(*mixers);
  if (const Result<void> good = check_config(config); !good) return good.error();
  return config;
}

}  // namespace lockstep::model
