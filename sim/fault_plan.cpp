#include "sim/fault_plan.h"

#include <algorithm>
#include <initializer_list>

namespace lockstep::sim {

namespace {

using Kinds = std::initializer_list<std::string_view>;

bool is_one_of(const FaultAction& action, Kinds kinds) {
  return std::ranges::find(kinds, action.kind) != kinds.end();
}

bool is_refusal(const FaultAction& action) {
  return action.kind == "refuse";
}

bool is_denial(const FaultAction& action) {
  return action.kind == "fail";
}

bool is_read_fault(const FaultAction& action) {
  return is_one_of(action, {"fail", "short", "corrupt_bit", "delay_us", "late_us", "reorder"});
}

bool is_put_fault(const FaultAction& action) {
  return is_one_of(action, {"fail", "delay_us", "late_us", "reorder"});
}

bool is_request(const FaultAction& action) {
  return is_one_of(action, {"stale", "cancel", "retract", "flush", "evict", "shrink", "restart"});
}

bool is_injectable(const FaultSpec& fault) {
  const FaultAction& action = fault.action;
  const bool is_asked_for = is_request(action) && action.kind != "stale";
  switch (fault.on) {
    case FaultPhase::alloc:
      return is_refusal(action);
    case FaultPhase::load:
      return is_read_fault(action) || is_asked_for;
    case FaultPhase::offload:
      return is_put_fault(action) || is_asked_for;
    case FaultPhase::lookup:
      return is_denial(action) || is_request(action);
    default:
      return is_asked_for;
  }
}

// What can be injected and can never end well.
std::string nonsense(const FaultSpec& fault) {
  const std::string& kind = fault.action.kind;
  if (kind == "shrink" && fault.action.number < 1) {
    return "/do/shrink/to: expected at least 1 row, found " + std::to_string(fault.action.number);
  }
  if (kind == "restart" && !fault.nth) {
    return "/nth: expected a number, found \"all\": nothing would survive its own restart";
  }
  return "";
}

BatchFault batch_fault(const FaultAction& action) {
  BatchFault fault;
  if (action.kind == "delay_us") fault.delay = Nanoseconds{action.number * 1000};
  if (action.kind == "late_us") fault.late = Nanoseconds{action.number * 1000};
  fault.reordered = action.kind == "reorder";
  return fault;
}

// The component that the event is about, if it is about one.
std::optional<Component> component_of(const EventBody& body) {
  if (const auto* evicted = std::get_if<Evicted>(&body)) return evicted->component;
  return std::nullopt;
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
  for (FaultSpec& fault : faults) {
    Site site{std::move(fault), {}, 0};
    for (std::size_t role = 0; role < site.roles.size(); ++role) {
      site.roles[role] = has_role(site.fault.action, static_cast<Role>(role));
    }
    sites_.push_back(std::move(site));
  }
}

bool FaultPlan::has_role(const FaultAction& action, Role role) {
  switch (role) {
    case Role::refusal:
      return is_refusal(action);
    case Role::denial:
      return is_denial(action);
    case Role::read:
      return is_read_fault(action);
    case Role::put:
      return is_put_fault(action);
    case Role::request:
      return is_request(action);
  }
  return false;
}

Result<void> FaultPlan::check(const std::vector<FaultSpec>& faults) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string pointer = "/faults/" + std::to_string(i);
    if (const std::string reason = nonsense(faults[i]); !reason.empty()) {
      return Error{pointer + reason};
    }
    if (is_injectable(faults[i])) continue;
    return Error{pointer +
                 "/do: expected an action that this version injects at that phase, found \"" +
                 faults[i].action.kind + "\""};
  }
  return {};
}

bool FaultPlan::matches(const FaultSpec& fault, const Occurrence& occurrence) const {
  if (fault.on != occurrence.phase) return false;
  const bool names_victim = fault.action.kind == "evict";
  if (fault.component && !names_victim && fault.component != occurrence.component) return false;
  if (fault.rank && *fault.rank != occurrence.rank) return false;
  if (fault.layer && fault.layer != occurrence.layer) return false;
  if (fault.page && fault.page != occurrence.page) return false;
  if (!fault.request) return true;
  const auto name = request_names_.find(occurrence.request);
  return name != request_names_.end() && name->second == *fault.request;
}

std::vector<FaultRequest> FaultPlan::fire(const Occurrence& occurrence, Role wanted) {
  std::vector<FaultRequest> fired;
  if (stopped_) return fired;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    Site& site = sites_[i];
    if (!site.roles[static_cast<std::size_t>(wanted)]) continue;
    if (!matches(site.fault, occurrence)) continue;
    ++site.seen;
    if (site.fault.nth && *site.fault.nth != site.seen) continue;
    ++injected_[site.fault.action.kind];
    fired.push_back({&site.fault, i, occurrence.rank, occurrence.request});
  }
  return fired;
}

bool FaultPlan::refuses(RankId rank, RequestId request, Component component, Purpose) {
  return !fire({FaultPhase::alloc, rank, request, component, {}, {}}, Role::refusal).empty();
}

bool FaultPlan::on_exists(const ObjectKey& key, bool present) {
  const auto denies = [](const Site& site) {
    return site.roles[static_cast<std::size_t>(Role::denial)];
  };
  if (!present || std::ranges::none_of(sites_, denies)) return present;
  const auto component = std::ranges::find_if(kComponents, [&](Component c) {
    return key.find("/" + std::string(name(c)) + "/") != ObjectKey::npos;
  });
  if (component == kComponents.end()) return present;
  return fire({FaultPhase::lookup, rank_of(key), kNoRequest, *component, {}, {}}, Role::denial)
      .empty();
}

GetFault FaultPlan::on_get(const GetItem& item) {
  GetFault injected;
  if (!item.note.payload) return injected;
  const Occurrence occurrence{FaultPhase::load,    item.note.rank,  item.note.request,
                              item.note.component, item.note.layer, item.note.page};
  for (const FaultRequest& fired : fire(occurrence, Role::read)) {
    const FaultAction& action = fired.fault->action;
    if (action.kind == "fail") injected.status = StoreStatus::failed;
    if (action.kind == "short") injected.short_to = Bytes{action.number};
    if (action.kind == "corrupt_bit")
      injected.corrupt_bit = static_cast<std::uint64_t>(action.number);
    injected.batch.add(batch_fault(action));
  }
  return injected;
}

PutFault FaultPlan::on_put(const PutItem& item) {
  PutFault injected;
  const Occurrence occurrence{
      FaultPhase::offload, item.note.rank, kNoRequest, item.note.component, {}, item.note.page};
  for (const FaultRequest& fired : fire(occurrence, Role::put)) {
    if (fired.fault->action.kind == "fail") injected.status = StoreStatus::failed;
    injected.batch.add(batch_fault(fired.fault->action));
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
    occurrence.component = component_of(event.body);
    for (const FaultRequest& fired : fire(occurrence, Role::request)) requests.push_back(fired);
  };
  add(FaultPhase::event);
  if (const auto phase = phase_of(event.body)) add(*phase);
  return requests;
}

}  // namespace lockstep::sim
