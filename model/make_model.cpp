#include "model/checkpoint.h"
#include "model/decoder.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/presets.h"

namespace lockstep::model {

namespace {

Result<std::unique_ptr<Model>> from_checkpoint(const ModelSpec& spec, std::uint64_t weight_seed,
                                               Shard shard) {
  const std::string where = spec.source.empty() ? "model" : spec.source;
  for (const auto& [key, given] : {std::pair{"window", spec.window.has_value()},
                                   {"vocab", spec.vocab.has_value()},
                                   {"layers", spec.layers.has_value()}}) {
    if (given) return Error{where + ": /" + key + ": fixed by the weights of a checkpoint"};
  }
  Result<Checkpoint> read = read_checkpoint(*spec.checkpoint);
  if (!read) return read.error();
  merge_state(spec, read->config);
  for (const Result<void>& good : {check_config(read->config), check_cacheable(read->config)}) {
    if (!good) return good.error();
  }
  // The seed still draws what adapters add.
  read->weights.seed = weight_seed;
  const std::string weights = read->weights_name + "," + std::to_string(weight_seed);
  return std::unique_ptr<Model>(
      std::make_unique<Decoder>(read->config, std::move(read->weights), weights, shard));
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, std::uint64_t weight_seed,
                                          Tokens cache_page, Shard shard) {
  if (spec.checkpoint) return from_checkpoint(spec, weight_seed, shard);
  const Result<ModelConfig> config = resolve_model_config(spec);
  if (!config) return config.error();
  if (config->arithmetic == Arithmetic::fingerprint) {
    return std::unique_ptr<Model>(std::make_unique<Fingerprint>(*config, weight_seed, cache_page));
  }
  return std::unique_ptr<Model>(std::make_unique<Decoder>(
      *config, draw_weights(*config, weight_seed), std::to_string(weight_seed), shard));
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

}  // namespace lockstep::model
