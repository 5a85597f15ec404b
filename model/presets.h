// The model files that are built into the binary (model/presets/*.json).
#pragma once

#include <span>
#include <string_view>

namespace lockstep::model {

struct Preset {
  std::string_view name;
  std::string_view json;
};

// Sorted by name. Defined in a source file that CMake writes from the folder.
std::span<const Preset> presets();

}  // namespace lockstep::model
