#include "model/decoder.h"
#include "model/fingerprint.h"
#include "model/model.h"
#include "model/presets.h"

namespace lockstep::model {

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, std::uint64_t weight_seed,
                                          Tokens cache_page, Shard shard) {
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
