#include "model/checkpoint.h"
#include "model/decoder.h"
#include "model/device_decoder.h"
#include "model/device_fingerprint.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/presets.h"

namespace lockstep::model {

namespace {

Result<std::unique_ptr<Model>> make_decoder(const ModelConfig& config, Weights weights,
                                            const std::string& weights_name, Shard shard,
                                            Accelerator* accelerator) {
  if (accelerator == nullptr) {
    return std::unique_ptr<Model>(
        std::make_unique<Decoder>(config, std::move(weights), weights_name, shard));
  }
  if (const Result<void> known = check_device_kernels(config); !known) return known.error();
  return std::unique_ptr<Model>(std::make_unique<DeviceDecoder>(config, std::move(weights),
                                                                weights_name, shard, *accelerator));
}

Result<std::unique_ptr<Model>> from_checkpoint(const ModelSpec& spec, std::uint64_t weight_seed,
                                               Shard shard, Accelerator* accelerator) {
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
  return make_decoder(read->config, std::move(read->weights), weights, shard, accelerator);
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, std::uint64_t weight_seed,
                                          Tokens cache_page, Shard shard,
                                          Accelerator* accelerator) {
  if (spec.checkpoint) return from_checkpoint(spec, weight_seed, shard, accelerator);
  const Result<ModelConfig> config = resolve_model_config(spec);
  if (!config) return config.error();
  if (config->arithmetic == Arithmetic::fingerprint && accelerator != nullptr) {
    return std::unique_ptr<Model>(
        std::make_unique<DeviceFingerprint>(*config, weight_seed, cache_page, *accelerator));
  }
  if (config->arithmetic == Arithmetic::fingerprint) {
    return std::unique_ptr<Model>(std::make_unique<Fingerprint>(*config, weight_seed, cache_page));
  }
  return make_decoder(*config, draw_weights(*config, weight_seed), std::to_string(weight_seed),
                      shard, accelerator);
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

}  // namespace lockstep::model
