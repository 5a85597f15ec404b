#include "sim/defects/registry.h"

#include <array>

#include "sim/defects/commit_defects.h"

namespace lockstep::sim {

namespace {

struct Entry {
  std::string_view id;
  std::unique_ptr<LinkParts> (*make)();
};

constexpr std::array kDefects{
    Entry{"commit.skip_state", defects::commit_skip_state},
};

}  // namespace

Result<std::unique_ptr<LinkParts>> make_parts(std::span<const std::string> defects) {
  if (defects.empty()) return std::make_unique<LinkParts>();
  if (defects.size() > 1) return Error{"at most one planted defect at a time"};
  for (const Entry& entry : kDefects) {
    if (entry.id == defects.front()) return entry.make();
  }
  std::string known;
  for (const Entry& entry : kDefects) known += " " + std::string(entry.id);
  return Error{"unknown defect \"" + defects.front() + "\", expected one of:" + known};
}

std::vector<std::string_view> defect_ids() {
  std::vector<std::string_view> ids;
  for (const Entry& entry : kDefects) ids.push_back(entry.id);
  return ids;
}

}  // namespace lockstep::sim
