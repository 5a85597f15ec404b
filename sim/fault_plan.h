// Faults by ordinal and filter (simulation.md, Faults): which occurrence of which operation goes
// wrong, and how.
//
//   alloc    one allocation with its retry            refuse
//   load     one read of one row's one layer          fail, short, corrupt_bit, delay_us, late_us,
//                                                     reorder
//   offload  one put of one object                    fail, delay_us, late_us, reorder
//   lookup   one answer for one object                fail: denied although it is there
//            one LOOKUP of one request on one rank    stale: what it found is gone before it is
//            read
//   event, and match, lookup, load, commit, offload, cow, forward, evict, vote as events of that
//   phase                                             cancel, retract, flush, evict, shrink,
//   restart:
//                                                     asked for right after it
//
// delay_us: the transfer takes effect that much later. late_us: it takes effect in time, its
// completion is dropped and delivered that much later. reorder: its completion comes behind those
// of later batches that are under way then. evict and shrink act on every rank, since ranks that
// evict for themselves would not be ranks of one cache; `component` says what evict takes (all of
// them without it) and does not filter. restart waits until the step or the clock's event is over.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/result.h"
#include "link/allocator.h"
#include "sim/scenario.h"
#include "store/memory_store.h"

namespace lockstep::sim {

// What a fault asks the world to do right after the event that it fired on.
struct FaultRequest {
  const FaultSpec* fault = nullptr;
  std::size_t site = 0;  // its place in the list of faults
  RankId rank;           // of the event
  RequestId request;     // of the event
};

class FaultPlan : public AllocationGate, public StoreFaults {
 public:
  // `request_names` outlives the plan; names may be added while the run goes.
  FaultPlan(std::vector<FaultSpec> faults, const std::map<RequestId, std::string>& request_names);

  // An error that names the fault if one of them asks for what is not injected at its phase.
  static Result<void> check(const std::vector<FaultSpec>& faults);

  bool refuses(RankId rank, RequestId request, Component component, Purpose purpose) override;
  bool on_exists(const ObjectKey& key, bool present) override;
  GetFault on_get(const GetItem& item) override;
  PutFault on_put(const PutItem& item) override;
  // The requests of the faults that fire on this event.
  std::vector<FaultRequest> on_event(const Event& event);

  // No fault fires from now on.
  void stop() { stopped_ = true; }

  // How often each action was injected.
  const std::map<std::string, std::int64_t>& injected() const { return injected_; }

 private:
  // What an action is to those who ask the plan; `fail` is several.
  enum class Role { refusal, denial, read, put, request };
  static bool has_role(const FaultAction& action, Role role);
  struct Site {
    FaultSpec fault;
    std::array<bool, 5> roles{};  // every event asks: names are not compared then
    std::int64_t seen = 0;
  };
  // One occurrence of an operation, as far as filters look at it.
  struct Occurrence {
    FaultPhase phase = FaultPhase::event;
    RankId rank;
    RequestId request = kNoRequest;
    std::optional<Component> component;
    std::optional<LayerId> layer;
    std::optional<Pages> page;
  };
  bool matches(const FaultSpec& fault, const Occurrence& occurrence) const;
  // Counts the occurrence at every site that matches and whose action has that role; returns the
  // faults that fire.
  std::vector<FaultRequest> fire(const Occurrence& occurrence, Role wanted);

  std::vector<Site> sites_;
  bool stopped_ = false;
  const std::map<RequestId, std::string>& request_names_;
  std::map<std::string, std::int64_t> injected_;
};

}  // namespace lockstep::sim
