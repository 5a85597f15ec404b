#include "sim/fault_plan.h"

namespace lockstep::sim {

FaultPlan::FaultPlan(std::vector<FaultSpec> faults,
                     const std::map<RequestId, std::string>& request_names)
    : request_names_(request_names) {
  for (FaultSpec& fault : faults) sites_.push_back({std::move(fault), 0});
}

Result<void> FaultPlan::check(const std::vector<FaultSpec>& faults) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].on == FaultPhase::alloc && faults[i].action.kind == "refuse") continue;
    return Error{"/faults/" + std::to_string(i) +
                 ": expected {\"on\": \"alloc\", \"do\": \"refuse\"}, the only fault that this "
                 "version injects, found \"" +
                 faults[i].action.kind + "\""};
  }
  return {};
}

bool FaultPlan::refuses(RankId rank, RequestId request, Component component, Purpose) {
  return fires(FaultPhase::alloc, rank, request, component);
}

bool FaultPlan::fires(FaultPhase phase, RankId rank, RequestId request, Component component) {
  const auto name = request_names_.find(request);
  bool fired = false;
  for (Site& site : sites_) {
    const FaultSpec& fault = site.fault;
    if (fault.on != phase || (fault.component && *fault.component != component)) continue;
    if (fault.rank && *fault.rank != rank) continue;
    if (fault.request && (name == request_names_.end() || name->second != *fault.request)) continue;
    ++site.seen;
    if (fault.nth && *fault.nth != site.seen) continue;
    ++injected_[fault.action.kind];
    fired = true;
  }
  return fired;
}

}  // namespace lockstep::sim
