#include "sim/defects/registry.h"

#include <array>

#include "sim/defects/admission_defects.h"
#include "sim/defects/ahead_defects.h"
#include "sim/defects/cancel_defects.h"
#include "sim/defects/commit_defects.h"
#include "sim/defects/cow_defects.h"
#include "sim/defects/evict_defects.h"
#include "sim/defects/finish_defects.h"
#include "sim/defects/key_defects.h"
#include "sim/defects/load_defects.h"
#include "sim/defects/lookup_defects.h"
#include "sim/defects/match_defects.h"
#include "sim/defects/offload_defects.h"
#include "sim/defects/pool_defects.h"
#include "sim/defects/ranks_defects.h"
#include "sim/defects/reset_defects.h"
#include "sim/defects/retract_defects.h"
#include "sim/defects/spec_defects.h"
#include "sim/defects/split_defects.h"
#include "sim/defects/state_defects.h"
#include "sim/defects/store_defects.h"
#include "sim/defects/swa_defects.h"

namespace lockstep::sim {

namespace {

constexpr std::array kPhases{
    defects::commit_defects, defects::cow_defects,       defects::state_defects,
    defects::lookup_defects, defects::match_defects,     defects::load_defects,
    defects::swa_defects,    defects::offload_defects,   defects::split_defects,
    defects::evict_defects,  defects::key_defects,       defects::cancel_defects,
    defects::reset_defects,  defects::retract_defects,   defects::pool_defects,
    defects::store_defects,  defects::admission_defects, defects::finish_defects,
    defects::ranks_defects,  defects::ahead_defects,     defects::spec_defects,
};

}  // namespace

Result<std::unique_ptr<engine::Parts>> make_parts(std::span<const std::string> defects) {
  if (defects.empty()) return std::make_unique<engine::Parts>();
  if (defects.size() > 1) return Error{"at most one planted defect at a time"};
  std::string known;
  for (const Defect& defect : all_defects()) {
    if (defect.id == defects.front()) return defect.make();
    known += " " + std::string(defect.id);
  }
  return Error{"unknown defect \"" + defects.front() + "\", expected one of:" + known};
}

std::vector<Defect> all_defects() {
  std::vector<Defect> all;
  for (const auto phase : kPhases) {
    const std::span<const Defect> defects = phase();
    all.insert(all.end(), defects.begin(), defects.end());
  }
  return all;
}

}  // namespace lockstep::sim
