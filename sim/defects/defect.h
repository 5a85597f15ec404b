// One planted defect as the registry lists it.
#pragma once

#include <memory>
#include <string_view>

#include "engine/parts.h"

namespace lockstep::sim {

struct Defect {
  std::string_view id;        // "<phase>.<what goes wrong>"; stable
  std::string_view classes;   // of known bugs, "C01 C11"
  std::string_view required;  // the invariant that must report it
  std::string_view also;      // what else is seen
  std::string_view wrong;     // the wrong behaviour
  std::unique_ptr<engine::Parts> (*make)();

  std::string_view phase() const { return id.substr(0, id.find('.')); }
};

}  // namespace lockstep::sim
