// Faults by ordinal and filter (simulation.md, Faults): which occurrence of which operation goes
// wrong, and how.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "link/allocator.h"
#include "sim/scenario.h"

namespace lockstep::sim {

class FaultPlan : public AllocationGate {
 public:
  // `request_names` outlives the plan; names may be added while the run goes.
  FaultPlan(std::vector<FaultSpec> faults, const std::map<RequestId, std::string>& request_names);

  // An error that names the fault if one of them asks for what this version does not inject.
  static Result<void> check(const std::vector<FaultSpec>& faults);

  bool refuses(RankId rank, RequestId request, Component component, Purpose purpose) override;

  // How often each action was injected.
  const std::map<std::string, std::int64_t>& injected() const { return injected_; }

 private:
  struct Site {
    FaultSpec fault;
    std::int64_t seen = 0;
  };
  // Counts one occurrence at every site that matches; true if one of them fires.
  bool fires(FaultPhase phase, RankId rank, RequestId request, Component component);

  std::vector<Site> sites_;
  const std::map<RequestId, std::string>& request_names_;
  std::map<std::string, std::int64_t> injected_;
};

}  // namespace lockstep::sim
