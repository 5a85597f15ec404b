#include "sim/fault_plan.h"

#include <algorithm>
#include <array>

namespace lockstep::sim {

namespace {

bool is_refusal(const FaultAction& action) {
  return action.kind == "refuse";
}

bool is_transfer_fault(const FaultAction& action) {
  constexpr std::array<std::string_view, 5> kinds{"fail", "short", "corrupt_bit", "delay_us",
                                                  "late_us"};
  return std::ranges::find(kinds, action.kind) != kinds.end();
}

bool is_request(const FaultAction& action) {
  constexpr std::array<std::string_view, 4> kinds{"stale", "cancel", "retract", "flush"};
  return std::ranges::find(kinds, action.kind) != kinds.end();
}

bool is_injectable(const FaultSpec& fault) {
  const std::string& kind = fault.action.kind;
  switch (fault.on) {
    case FaultPhase::alloc:
      return is_refusal(fault.action);
    case FaultPhase::load:
      return is_transfer_fault(fault.action) || (is_request(fault.action) && kind != "stale");
    case FaultPhase::offload:
      return kind == "fail" || kind == "delay_us" || kind == "late_us" ||
             (is_request(fault.action) && kind != "stale");
    case FaultPhase::lookup:
      return is_request(fault.action);
    default:
      return is_request(fault.action) && kind != "stale";
  }
}

// The phase that an event belongs to; nothing for events that faults cannot name but by their
// number.
std::optional<FaultPhase> phase_of(const EventBody& body) {
  if (std::holds_alternative<Matched>(body)) return FaultPhase::match;
  if (std::holds_alternative<LookedUp>(body)) return FaultPhase::lookup;
  if (std::holds_alternative<LoadQueued>(body)) return FaultPhase::load;
  if (std::holds_alternative<Committed>(body)) return FaultPhase::commit;
  if (std::holds_alternative<OffloadQueued>(body)) return FaultPhase::offload;
  if (std::holds_alternative<CopyExecuted>(body)) return FaultPhase::cow;
  if (std::holds_alternative<ForwardLaunched>(body)) return FaultPhase::forward;
  if (std::holds_alternative<Evicted>(body)) return FaultPhase::evict;
  if (std::holds_alternative<Voted>(body)) return FaultPhase::vote;
  return std::nullopt;
}

}  // namespace

FaultPlan::FaultPlan(std::vector<FaultSpec> faults,
                     const std::map<RequestId, std::string>& request_names)
    : request_names_(request_names) {
  for (FaultSpec& fault : faults) sites_.push_back({std::move(fault), 0});
}

Result<void> FaultPlan::check(const std::vector<FaultSpec>& faults) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (is_injectable(faults[i])) continue;
    return Error{"/faults/" + std::to_string(i) +
                 "/do: expected an action that this version injects at that phase, found \"" +
                 faults[i].action.kind + "\""};
  }
  return {};
}

bool FaultPlan::matches(const FaultSpec& fault, const Occurrence& occurrence) const {
  if (fault.on != occurrence.phase) return false;
  if (fault.component && fault.component != occurrence.component) return false;
  if (fault.rank && *fault.rank != occurrence.rank) return false;
  if (fault.layer && fault.layer != occurrence.layer) return false;
  if (fault.page && fault.page != occurrence.page) return false;
  if (!fault.request) return true;
  const auto name = request_names_.find(occurrence.request);
  return name != request_names_.end() && name->second == *fault.request;
}

std::vector<const FaultSpec*> FaultPlan::fire(const Occurrence& occurrence,
                                              bool (*wanted)(const FaultAction&)) {
  std::vector<const FaultSpec*> fired;
  if (stopped_) return fired;
  for (Site& site : sites_) {
    if (!wanted(site.fault.action) || !matches(site.fault, occurrence)) continue;
    ++site.seen;
    if (site.fault.nth && *site.fault.nth != site.seen) continue;
    ++injected_[site.fault.action.kind];
    fired.push_back(&site.fault);
  }
  return fired;
}

bool FaultPlan::refuses(RankId rank, RequestId request, Component component, Purpose) {
  return !fire({FaultPhase::alloc, rank, request, component, {}, {}}, is_refusal).empty();
}

GetFault FaultPlan::on_get(const GetItem& item) {
  GetFault injected;
  if (!item.note.payload) return injected;
  const Occurrence occurrence{FaultPhase::load,    item.note.rank,  item.note.request,
                              item.note.component, item.note.layer, item.note.page};
  for (const FaultSpec* fault : fire(occurrence, is_transfer_fault)) {
    const FaultAction& action = fault->action;
    if (action.kind == "fail") injected.status = StoreStatus::failed;
    if (action.kind == "short") injected.short_to = Bytes{action.number};
    if (action.kind == "corrupt_bit")
      injected.corrupt_bit = static_cast<std::uint64_t>(action.number);
    if (action.kind == "delay_us" || action.kind == "late_us") {
      injected.delay = Nanoseconds{action.number * 1000};
    }
  }
  return injected;
}

PutFault FaultPlan::on_put(const PutItem& item) {
  PutFault injected;
  const Occurrence occurrence{
      FaultPhase::offload, item.note.rank, kNoRequest, item.note.component, {}, item.note.page};
  for (const FaultSpec* fault : fire(occurrence, is_transfer_fault)) {
    if (fault->action.kind == "fail")
      injected.status = StoreStatus::failed;
    else
      injected.delay = Nanoseconds{fault->action.number * 1000};
  }
  return injected;
}

std::vector<FaultRequest> FaultPlan::on_event(const Event& event) {
  std::vector<FaultRequest> requests;
  if (sites_.empty()) return requests;
  const auto add = [&](FaultPhase phase) {
    Occurrence occurrence;
    occurrence.phase = phase;
    occurrence.rank = event.rank;
    occurrence.request = event.request;
    for (const FaultSpec* fault : fire(occurrence, is_request)) {
      requests.push_back({&fault->action, event.rank, event.request});
    }
  };
  add(FaultPhase::event);
  if (const auto phase = phase_of(event.body)) add(*phase);
  return requests;
}

}  // namespace lockstep::sim
