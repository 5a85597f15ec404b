// The three kinds of cached state that a hybrid model has (semantics 1).
#pragma once

#include <array>
#include <string_view>

namespace lockstep {

enum class Component { full, swa, mamba };

inline constexpr std::array<Component, 3> kComponents{Component::full, Component::swa,
                                                      Component::mamba};

constexpr std::size_t index(Component component) {
  return static_cast<std::size_t>(component);
}

constexpr std::string_view name(Component component) {
  constexpr std::array<std::string_view, 3> names{"full", "swa", "mamba"};
  return names[index(component)];
}

// Which part of a row an access touches; with the layer it is the grain of per-layer events and of
// race detection.
enum class Part { kv, temporal, conv };

constexpr std::string_view name(Part part) {
  constexpr std::array<std::string_view, 3> names{"kv", "temporal", "conv"};
  return names[static_cast<std::size_t>(part)];
}

}  // namespace lockstep
