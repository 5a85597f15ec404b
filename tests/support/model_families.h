// The numeric models that tests run over: the preset of each family, and the golden checkpoints
// that a cache takes (that of Mamba2 has no attention).
#pragma once

#include <vector>

#include "model/spec.h"

namespace lockstep::model {

inline std::vector<ModelSpec> family_presets() {
  std::vector<ModelSpec> specs;
  for (const char* name : {"mamba2-nano", "gdn-nano", "kda-nano", "lfm2-nano", "hybrid-nano"}) {
    specs.emplace_back().preset = name;
  }
  return specs;
}

inline std::vector<ModelSpec> golden_checkpoints() {
  std::vector<ModelSpec> specs;
  for (const char* name :
       {"inkling", "inkling-moe", "lfm2", "qwen3-next", "kimi-linear", "falcon-h1", "nemotron-h"}) {
    specs.emplace_back().checkpoint = LOCKSTEP_SOURCE_DIR "/tests/golden/" + std::string(name);
  }
  return specs;
}

inline std::vector<ModelSpec> families() {
  std::vector<ModelSpec> specs = family_presets();
  for (ModelSpec& spec : golden_checkpoints()) specs.push_back(std::move(spec));
  return specs;
}

}  // namespace lockstep::model
