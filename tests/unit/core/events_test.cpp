#include "core/events.h"

#include <set>
#include <string>
#include <vector>

#include "catch.h"

namespace lockstep {
namespace {

// Writes every visited field as one line of text, in the order of the visits.
class FieldText : public FieldVisitor {
 public:
  void number(std::string_view field, std::int64_t value) override {
    lines.push_back(std::string(field) + "=" + std::to_string(value));
  }
  void text(std::string_view field, std::string_view value) override {
    lines.push_back(std::string(field) + "='" + std::string(value) + "'");
  }
  void numbers(std::string_view field, std::span<const std::int64_t> values) override {
    std::string line = std::string(field) + "=[";
    for (std::int64_t value : values) line += " " + std::to_string(value);
    lines.push_back(line + " ]");
  }
  void bytes(std::string_view field, std::span<const std::byte> value) override {
    lines.push_back(std::string(field) + "=" + std::to_string(value.size()) + " bytes");
  }
  std::vector<std::string> lines;
};

std::vector<std::string> fields_of(const EventBody& body) {
  FieldText text;
  visit_fields(body, text);
  return text.lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("an event is named after its struct, in snake case") {
  REQUIRE(event_name(StepBegun{}) == "step_begun");
  REQUIRE(event_name(RequestSubmitted{}) == "request_submitted");
  REQUIRE(event_name(RequestRefused{}) == "request_refused");
  REQUIRE(event_name(TokenAccepted{}) == "token_accepted");
  REQUIRE(event_name(RequestRetracted{}) == "request_retracted");
  REQUIRE(event_name(RequestRestarted{}) == "request_restarted");
  REQUIRE(event_name(RequestFinished{}) == "request_finished");
  REQUIRE(event_name(RequestCancelled{}) == "request_cancelled");
  REQUIRE(event_name(CacheFlushed{}) == "cache_flushed");
  REQUIRE(event_name(EngineRestarted{}) == "engine_restarted");
  REQUIRE(event_name(Matched{}) == "matched");
  REQUIRE(event_name(LookedUp{}) == "looked_up");
  REQUIRE(event_name(Voted{}) == "voted");
  REQUIRE(event_name(GaveUp{}) == "gave_up");
  REQUIRE(event_name(AllocationFailed{}) == "allocation_failed");
  REQUIRE(event_name(LoadPlanned{}) == "load_planned");
  REQUIRE(event_name(LoadAborted{}) == "load_aborted");
  REQUIRE(event_name(Prepared{}) == "prepared");
  REQUIRE(event_name(Inserted{}) == "inserted");
  REQUIRE(event_name(Committed{}) == "committed");
  REQUIRE(event_name(LoadQueued{}) == "load_queued");
  REQUIRE(event_name(LoadStarted{}) == "load_started");
  REQUIRE(event_name(LayerLanded{}) == "layer_landed");
  REQUIRE(event_name(LoadFinished{}) == "load_finished");
  REQUIRE(event_name(CopyExecuted{}) == "copy_executed");
  REQUIRE(event_name(SlotCleared{}) == "slot_cleared");
  REQUIRE(event_name(ForwardLaunched{}) == "forward_launched");
  REQUIRE(event_name(ForwardAccepted{}) == "forward_accepted");
  REQUIRE(event_name(CheckpointTracked{}) == "checkpoint_tracked");
  REQUIRE(event_name(RowsAllocated{}) == "rows_allocated");
  REQUIRE(event_name(RowsFreed{}) == "rows_freed");
  REQUIRE(event_name(RowsReleased{}) == "rows_released");
  REQUIRE(event_name(NodeCreated{}) == "node_created");
  REQUIRE(event_name(NodeSplit{}) == "node_split");
  REQUIRE(event_name(NodeRemoved{}) == "node_removed");
  REQUIRE(event_name(Evicted{}) == "evicted");
  REQUIRE(event_name(LockTaken{}) == "lock_taken");
  REQUIRE(event_name(LockReleased{}) == "lock_released");
  REQUIRE(event_name(OffloadQueued{}) == "offload_queued");
  REQUIRE(event_name(OffloadFinished{}) == "offload_finished");
  REQUIRE(event_name(OffloadWalked{}) == "offload_walked");
  REQUIRE(event_name(StoredFlagSet{}) == "stored_flag_set");
  REQUIRE(event_name(StorePut{}) == "store_put");
  REQUIRE(event_name(StoreRemoved{}) == "store_removed");
  REQUIRE(event_name(StoreCleared{}) == "store_cleared");
  REQUIRE(event_name(RowsWithdrawn{}) == "rows_withdrawn");
  REQUIRE(event_name(FalseAnswer{}) == "false_answer");
}

TEST_CASE("event names list every event once") {
  const std::set<std::string_view> distinct(event_names().begin(), event_names().end());
  REQUIRE(distinct.size() == std::variant_size_v<EventBody>);
  REQUIRE(event_names().size() == std::variant_size_v<EventBody>);
}

TEST_CASE("fields are visited in declaration order") {
  const std::vector<Tokens> restorable{Tokens{128}, Tokens{256}};
  REQUIRE(fields_of(LookedUp{Tokens{64}, restorable}) ==
          Lines{"device_hit=64", "restorable=[ 128 256 ]"});
  REQUIRE(
      fields_of(Evicted{
          NodeId{7}, Component::swa, PageRange{Pages{2}, Pages{4}}, {}, EvictionCause::cascade}) ==
      Lines{"node=7", "component='swa'", "pages=[ 2 4 ]", "rows=[ ]", "cause='cascade'"});
}

TEST_CASE("an absent optional is not visited, an empty one is") {
  const std::vector<TokenId> prompt{TokenId{5}};
  REQUIRE(fields_of(RequestSubmitted{prompt, Tokens{2}, std::nullopt, "", false}) ==
          Lines{"prompt=[ 5 ]", "decode=2", "cache_salt=''", "resumed=0"});
}

TEST_CASE("ranges are flat, booleans are numbers, enumerators are names") {
  const std::vector<PageRange> adopted{{Pages{0}, Pages{1}}, {Pages{3}, Pages{5}}};
  const std::vector<Row> rows{Row{9}, Row{8}, Row{7}};
  Inserted inserted;
  inserted.cause = InsertCause::finish;
  inserted.end = Tokens{640};
  inserted.full_adopted = adopted;
  inserted.full_adopted_rows = rows;
  inserted.mamba_exist = true;
  const Lines lines = fields_of(inserted);
  REQUIRE(lines.size() == 15);
  REQUIRE(lines[0] == "cause='finish'");
  REQUIRE(lines[1] == "end=640");
  REQUIRE(lines[6] == "full_adopted=[ 0 1 3 5 ]");
  REQUIRE(lines[10] == "full_adopted_rows=[ 9 8 7 ]");
  REQUIRE(lines[14] == "mamba_exist=1");
}

TEST_CASE("a list of records is its size and the fields of each record") {
  const std::vector<PageHash> hashes(2);
  const std::vector<Row> rows{Row{3}, Row{4}};
  const std::vector<TransferView> transfers{
      {Component::full, rows, hashes, PageRange{Pages{0}, Pages{2}}},
      {Component::mamba, {}, {}, PageRange{Pages{1}, Pages{2}}}};
  REQUIRE(fields_of(LoadQueued{LoadId{1}, Tokens{256}, transfers}) ==
          Lines{"load=1", "boundary=256", "transfers=2", "component='full'", "rows=[ 3 4 ]",
                "hashes=64 bytes", "pages=[ 0 2 ]", "component='mamba'", "rows=[ ]",
                "hashes=0 bytes", "pages=[ 1 2 ]"});

  const std::vector<SnapshotView> snapshots{{Tokens{128}, Row{6}}};
  SegmentView segment;
  segment.request = RequestId{2};
  segment.start = Tokens{64};
  segment.q = Row{5};
  segment.snapshots = snapshots;
  segment.drafts = Tokens{3};
  const std::vector<SegmentView> segments{segment};
  REQUIRE(fields_of(ForwardLaunched{ForwardId{4}, segments}) ==
          Lines{"forward=4", "segments=1", "request=2", "start=64", "tokens=[ ]", "full=[ ]",
                "swa=[ ]", "q=5", "snapshots=1", "depth=128", "slot=6", "drafts=3",
                "outputs=0 bytes"});
}

TEST_CASE("reasons, purposes, causes and holders have names") {
  REQUIRE(name(GiveUp::none) == "none");
  REQUIRE(name(GiveUp::no_room_tail) == "no_room_tail");
  REQUIRE(name(GiveUp::no_room_hit) == "no_room_hit");
  REQUIRE(name(GiveUp::allocation) == "allocation");
  REQUIRE(name(GiveUp::vote) == "vote");
  REQUIRE(name(GiveUp::failed_load) == "failed_load");
  REQUIRE(name(GiveUp::injected) == "injected");
  REQUIRE(name(Purpose::private_slot) == "private_slot");
  REQUIRE(name(Purpose::forward) == "forward");
  REQUIRE(name(InsertCause::retract) == "retract");
  REQUIRE(name(EvictionCause::roll_back) == "roll_back");
  REQUIRE(name(LockHolder::copy) == "copy");
}

}  // namespace lockstep
