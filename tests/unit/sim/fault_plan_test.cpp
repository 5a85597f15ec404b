// Which occurrence a fault fires on, what it injects there, and which faults are refused.
#include "sim/fault_plan.h"

#include "catch.h"

namespace lockstep::sim {
namespace {

const std::map<RequestId, std::string> kNames{{RequestId{0}, "first"}, {RequestId{1}, "second"}};

FaultSpec fault(FaultPhase on, std::string kind, std::int64_t number = 0) {
  FaultSpec spec;
  spec.on = on;
  spec.action.kind = std::move(kind);
  spec.action.number = number;
  return spec;
}

std::string refusal(const FaultSpec& spec) {
  const Result<void> checked = FaultPlan::check({spec});
  return checked ? "" : checked.error().message;
}

GetItem read_of(Component component, std::int64_t page) {
  GetItem item;
  item.note.component = component;
  item.note.page = Pages{page};
  return item;
}

Event event_of(RankId rank, RequestId request, EventBody body) {
  Event event;
  event.rank = rank;
  event.request = request;
  event.body = std::move(body);
  return event;
}

}  // namespace

TEST_CASE("what cannot be injected at a phase is refused") {
  REQUIRE(refusal(fault(FaultPhase::load, "refuse")) ==
          "/faults/0/do: expected an action that this version injects at that phase, found "
          "\"refuse\"");
  REQUIRE(!refusal(fault(FaultPhase::alloc, "fail")).empty());
  REQUIRE(!refusal(fault(FaultPhase::offload, "corrupt_bit", 3)).empty());
  REQUIRE(!refusal(fault(FaultPhase::offload, "stale")).empty());
  REQUIRE(!refusal(fault(FaultPhase::match, "reorder")).empty());
  for (const char* kind : {"fail", "short", "corrupt_bit", "delay_us", "late_us", "reorder"}) {
    REQUIRE(refusal(fault(FaultPhase::load, kind)).empty());
  }
  for (const char* kind : {"cancel", "retract", "flush", "evict", "restart"}) {
    REQUIRE(refusal(fault(FaultPhase::event, kind)).empty());
    REQUIRE(refusal(fault(FaultPhase::vote, kind)).empty());
  }
}

TEST_CASE("what can never end well is refused") {
  REQUIRE(refusal(fault(FaultPhase::event, "shrink", 0)) ==
          "/faults/0/do/shrink/to: expected at least 1 row, found 0");
  REQUIRE(refusal(fault(FaultPhase::event, "shrink", 1)).empty());
  FaultSpec forever = fault(FaultPhase::commit, "restart");
  forever.nth.reset();
  REQUIRE(refusal(forever) ==
          "/faults/0/nth: expected a number, found \"all\": nothing would survive its own restart");
}

TEST_CASE("late, delayed and reordered are three things") {
  FaultSpec late = fault(FaultPhase::load, "late_us", 5);
  FaultSpec delayed = fault(FaultPhase::load, "delay_us", 3);
  FaultSpec reordered = fault(FaultPhase::load, "reorder");
  late.page = Pages{0};
  delayed.page = Pages{1};
  reordered.page = Pages{2};
  FaultPlan plan({late, delayed, reordered}, kNames);
  const BatchFault first = plan.on_get(read_of(Component::full, 0)).batch;
  REQUIRE((first.late == Nanoseconds{5000} && first.delay == Nanoseconds{0} && !first.reordered));
  const BatchFault second = plan.on_get(read_of(Component::full, 1)).batch;
  REQUIRE((second.late == Nanoseconds{0} && second.delay == Nanoseconds{3000}));
  REQUIRE(plan.on_get(read_of(Component::full, 2)).batch.reordered);
}

TEST_CASE("an answer is denied by component, rank and number, and only where it would be yes") {
  FaultSpec denied = fault(FaultPhase::lookup, "fail");
  denied.component = Component::swa;
  denied.rank = RankId{1};
  denied.nth = 2;
  FaultPlan plan({denied}, kNames);
  REQUIRE(plan.on_exists("aa/swa/1of2", true));
  REQUIRE_FALSE(plan.on_exists("bb/swa/1of2", false));
  REQUIRE(plan.on_exists("bb/swa/0of2", true));
  REQUIRE(plan.on_exists("bb/full/1of2", true));
  REQUIRE_FALSE(plan.on_exists("cc/swa/1of2", true));  // the second yes of that kind
  REQUIRE(plan.on_exists("dd/swa/1of2", true));
  REQUIRE(plan.injected() == std::map<std::string, std::int64_t>{{"fail", 1}});
}

TEST_CASE("the component of an eviction names the victim, not the event") {
  FaultSpec evict = fault(FaultPhase::commit, "evict");
  evict.component = Component::mamba;
  evict.request = "second";
  FaultPlan plan({evict}, kNames);
  REQUIRE(plan.on_event(event_of(RankId{0}, RequestId{0}, Committed{})).empty());
  const auto fired = plan.on_event(event_of(RankId{1}, RequestId{1}, Committed{}));
  REQUIRE(fired.size() == 1);
  REQUIRE(fired.front().fault->component == Component::mamba);
  REQUIRE(fired.front().rank == RankId{1});
}

TEST_CASE("the component of anything else filters the events of its phase") {
  FaultSpec cancel = fault(FaultPhase::evict, "cancel");
  cancel.component = Component::swa;
  FaultPlan plan({cancel}, kNames);
  Evicted evicted;
  evicted.component = Component::full;
  REQUIRE(plan.on_event(event_of(RankId{0}, kNoRequest, evicted)).empty());
  evicted.component = Component::swa;
  REQUIRE(plan.on_event(event_of(RankId{0}, kNoRequest, evicted)).size() == 1);
}

}  // namespace lockstep::sim
