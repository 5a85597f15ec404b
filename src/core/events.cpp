#include "core/events.h"

#include <array>
#include <concepts>
#include <type_traits>

namespace lockstep {
namespace {

template <class Enum, std::size_t size>
constexpr std::string_view name_in(const std::array<std::string_view, size>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

// Turns typed fields into the few forms that a FieldVisitor knows. Counts, ids and booleans are
// numbers; enumerators are their names; a page range is the two numbers begin, end; a list of
// ranges is all of them, flat.
class Fields {
 public:
  explicit Fields(FieldVisitor& visitor) : visitor_(visitor) {}

  template <class Tag, class Rep>
  Fields& add(std::string_view field, Count<Tag, Rep> count) {
    return number(field, static_cast<std::int64_t>(count.value()));
  }
  template <class Tag, class Rep>
  Fields& add(std::string_view field, Id<Tag, Rep> id) {
    return number(field, static_cast<std::int64_t>(id.value()));
  }
  template <std::same_as<bool> Flag>
  Fields& add(std::string_view field, Flag flag) {
    return number(field, flag ? 1 : 0);
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  Fields& add(std::string_view field, Enum value) {
    return add(field, name(value));
  }
  Fields& add(std::string_view field, std::string_view text) {
    visitor_.text(field, text);
    return *this;
  }
  Fields& add(std::string_view field, std::optional<std::string_view> text) {
    return text ? add(field, *text) : *this;
  }
  Fields& add(std::string_view field, PageRange range) {
    return add(field, std::span<const PageRange>(&range, 1));
  }
  Fields& add(std::string_view field, std::span<const PageRange> ranges) {
    scratch_.clear();
    for (const PageRange& range : ranges) {
      scratch_.push_back(range.begin.value());
      scratch_.push_back(range.end.value());
    }
    visitor_.numbers(field, scratch_);
    return *this;
  }
  Fields& add(std::string_view field, std::span<const PageHash> hashes) {
    return add(field, std::as_bytes(hashes));
  }
  Fields& add(std::string_view field, std::span<const std::byte> bytes) {
    visitor_.bytes(field, bytes);
    return *this;
  }
  // A list of ids or counts.
  template <class T>
  Fields& add(std::string_view field, std::span<const T> values) {
    scratch_.clear();
    for (const T& value : values) scratch_.push_back(static_cast<std::int64_t>(value.value()));
    visitor_.numbers(field, scratch_);
    return *this;
  }
  // Calls visit_one for each record of a list.
  template <class Record, class VisitOne>
  Fields& add_records(std::string_view list, std::span<const Record> records, VisitOne visit_one) {
    visitor_.records(list, std::ssize(records));
    for (const Record& record : records) {
      visitor_.begin_record();
      visit_one(record, *this);
      visitor_.end_record();
    }
    return *this;
  }

 private:
  Fields& number(std::string_view field, std::int64_t value) {
    visitor_.number(field, value);
    return *this;
  }

  FieldVisitor& visitor_;
  std::vector<std::int64_t> scratch_;
};

// ---------------------------------------------------------------- records inside events

void visit_transfer(const TransferView& transfer, Fields& fields) {
  fields.add("component", transfer.component)
      .add("rows", transfer.rows)
      .add("hashes", transfer.hashes)
      .add("pages", transfer.pages);
}

void visit_snapshot(const SnapshotView& snapshot, Fields& fields) {
  fields.add("depth", snapshot.depth).add("slot", snapshot.slot);
}

void visit_segment(const SegmentView& segment, Fields& fields) {
  fields.add("request", segment.request)
      .add("start", segment.start)
      .add("tokens", segment.tokens)
      .add("full", segment.full)
      .add("swa", segment.swa)
      .add("q", segment.q)
      .add_records("snapshots", segment.snapshots, visit_snapshot)
      .add("drafts", segment.drafts)
      .add("outputs", segment.outputs);
}

// ---------------------------------------------------------------- requests

void visit(const StepBegun&, Fields&) {}
void visit(const RequestSubmitted& event, Fields& fields) {
  fields.add("prompt", event.prompt)
      .add("decode", event.decode)
      .add("extra_key", event.extra_key)
      .add("cache_salt", event.cache_salt)
      .add("resumed", event.resumed);
}
void visit(const RequestRefused& event, Fields& fields) {
  fields.add("reason", event.reason);
}
void visit(const TokenAccepted& event, Fields& fields) {
  fields.add("token", event.token).add("position", event.position);
}
void visit(const RequestRetracted&, Fields&) {}
void visit(const RequestRestarted&, Fields&) {}
void visit(const RequestFinished&, Fields&) {}
void visit(const RequestCancelled&, Fields&) {}
void visit(const CacheFlushed&, Fields&) {}
void visit(const EngineRestarted&, Fields&) {}

// ---------------------------------------------------------------- phases

void visit(const Matched& event, Fields& fields) {
  fields.add("device_hit", event.device_hit)
      .add("full_matched", event.full_matched)
      .add("node", event.node)
      .add("query_store", event.query_store);
}
void visit(const LookedUp& event, Fields& fields) {
  fields.add("device_hit", event.device_hit).add("restorable", event.restorable);
}
void visit(const Voted& event, Fields& fields) {
  fields.add("device_hit", event.device_hit).add("boundary", event.boundary);
}
void visit(const GaveUp& event, Fields& fields) {
  fields.add("possible", event.possible)
      .add("boundary", event.boundary)
      .add("reason", event.reason);
}
void visit(const AllocationFailed& event, Fields& fields) {
  fields.add("component", event.component)
      .add("purpose", event.purpose)
      .add("wanted", event.wanted)
      .add("free", event.free)
      .add("evictable", event.evictable)
      .add("injected", event.injected);
}
void visit(const LoadPlanned& event, Fields& fields) {
  fields.add("device_hit", event.device_hit)
      .add("boundary", event.boundary)
      .add("full", event.full)
      .add("swa", event.swa)
      .add("state", event.state);
}
void visit(const LoadAborted& event, Fields& fields) {
  fields.add("component", event.component).add("rows", event.rows);
}
void visit(const Prepared& event, Fields& fields) {
  fields.add("cursor", event.cursor);
}
void visit(const Inserted& event, Fields& fields) {
  fields.add("cause", event.cause)
      .add("end", event.end)
      .add("fed", event.fed)
      .add("incoming", event.incoming)
      .add("cursor", event.cursor)
      .add("node", event.node)
      .add("full_adopted", event.full_adopted)
      .add("full_duplicate", event.full_duplicate)
      .add("swa_adopted", event.swa_adopted)
      .add("swa_duplicate", event.swa_duplicate)
      .add("full_adopted_rows", event.full_adopted_rows)
      .add("swa_adopted_rows", event.swa_adopted_rows)
      .add("state", event.state)
      .add("state_depth", event.state_depth)
      .add("mamba_exist", event.mamba_exist);
}
void visit(const Committed& event, Fields& fields) {
  fields.add("device_hit", event.device_hit)
      .add("boundary", event.boundary)
      .add("node", event.node)
      .add("source", event.source)
      .add("q", event.q)
      .add("mamba_exist", event.mamba_exist)
      .add("from_load", event.from_load)
      .add("commit", event.commit);
}
void visit(const LoadQueued& event, Fields& fields) {
  fields.add("load", event.load)
      .add("boundary", event.boundary)
      .add_records("transfers", event.transfers, visit_transfer);
}
void visit(const LoadStarted& event, Fields& fields) {
  fields.add("load", event.load);
}
void visit(const LayerLanded& event, Fields& fields) {
  fields.add("load", event.load).add("layer", event.layer);
}
void visit(const LoadFinished& event, Fields& fields) {
  fields.add("load", event.load).add("good", event.good);
}
void visit(const CopyExecuted& event, Fields& fields) {
  fields.add("source", event.source).add("q", event.q).add("commit", event.commit);
}
void visit(const SlotCleared& event, Fields& fields) {
  fields.add("q", event.q).add("commit", event.commit);
}

// ---------------------------------------------------------------- forwards

void visit(const ForwardLaunched& event, Fields& fields) {
  fields.add("forward", event.forward).add_records("segments", event.segments, visit_segment);
}
void visit(const ForwardAccepted& event, Fields& fields) {
  fields.add("forward", event.forward).add_records("segments", event.segments, visit_segment);
}
void visit(const CheckpointTracked& event, Fields& fields) {
  fields.add("depth", event.depth).add("slot", event.slot);
}

// ---------------------------------------------------------------- pools and tree

void visit(const RowsAllocated& event, Fields& fields) {
  fields.add("component", event.component).add("purpose", event.purpose).add("rows", event.rows);
}
void visit(const RowsFreed& event, Fields& fields) {
  fields.add("component", event.component).add("rows", event.rows);
}
void visit(const RowsReleased& event, Fields& fields) {
  fields.add("rows", event.rows).add("cursor", event.cursor);
}
void visit(const NodeCreated& event, Fields& fields) {
  fields.add("node", event.node)
      .add("parent", event.parent)
      .add("begin", event.begin)
      .add("end", event.end);
}
void visit(const NodeSplit& event, Fields& fields) {
  fields.add("upper", event.upper).add("lower", event.lower).add("at", event.at);
}
void visit(const NodeRemoved& event, Fields& fields) {
  fields.add("node", event.node);
}
void visit(const Evicted& event, Fields& fields) {
  fields.add("node", event.node)
      .add("component", event.component)
      .add("pages", event.pages)
      .add("rows", event.rows)
      .add("cause", event.cause);
}
void visit(const LockTaken& event, Fields& fields) {
  fields.add("lock", event.lock)
      .add("holder", event.holder)
      .add("node", event.node)
      .add("swa", event.swa)
      .add("mamba", event.mamba);
}
void visit(const LockReleased& event, Fields& fields) {
  fields.add("lock", event.lock);
}

// ---------------------------------------------------------------- offload and store

void visit(const OffloadQueued& event, Fields& fields) {
  fields.add("offload", event.offload)
      .add("node", event.node)
      .add_records("transfers", event.transfers, visit_transfer);
}
void visit(const OffloadFinished& event, Fields& fields) {
  fields.add("offload", event.offload).add("good", event.good);
}
void visit(const OffloadWalked& event, Fields& fields) {
  fields.add("node", event.node);
}
void visit(const StoredFlagSet& event, Fields& fields) {
  fields.add("node", event.node).add("component", event.component).add("pages", event.pages);
}
void visit(const StorePut& event, Fields& fields) {
  fields.add("key", event.key).add("stored", event.stored).add("accepted", event.accepted);
}
void visit(const StoreRemoved& event, Fields& fields) {
  fields.add("key", event.key);
}
void visit(const StoreCleared&, Fields&) {}
void visit(const RowsWithdrawn& event, Fields& fields) {
  fields.add("component", event.component).add("rows", event.rows);
}
void visit(const FalseAnswer& event, Fields& fields) {
  fields.add("key", event.key).add("present", event.present);
}

// In the order of EventBody's alternatives.
constexpr std::array<std::string_view, 47> kEventNames{"step_begun",
                                                       "request_submitted",
                                                       "request_refused",
                                                       "token_accepted",
                                                       "request_retracted",
                                                       "request_restarted",
                                                       "request_finished",
                                                       "request_cancelled",
                                                       "cache_flushed",
                                                       "engine_restarted",
                                                       "matched",
                                                       "looked_up",
                                                       "voted",
                                                       "gave_up",
                                                       "allocation_failed",
                                                       "load_planned",
                                                       "load_aborted",
                                                       "prepared",
                                                       "inserted",
                                                       "committed",
                                                       "load_queued",
                                                       "load_started",
                                                       "layer_landed",
                                                       "load_finished",
                                                       "copy_executed",
                                                       "slot_cleared",
                                                       "forward_launched",
                                                       "forward_accepted",
                                                       "checkpoint_tracked",
                                                       "rows_allocated",
                                                       "rows_freed",
                                                       "rows_released",
                                                       "node_created",
                                                       "node_split",
                                                       "node_removed",
                                                       "evicted",
                                                       "lock_taken",
                                                       "lock_released",
                                                       "offload_queued",
                                                       "offload_finished",
                                                       "offload_walked",
                                                       "stored_flag_set",
                                                       "store_put",
                                                       "store_removed",
                                                       "store_cleared",
                                                       "rows_withdrawn",
                                                       "false_answer"};
static_assert(kEventNames.size() == std::variant_size_v<EventBody>);

}  // namespace

std::string_view name(GiveUp reason) {
  constexpr std::array<std::string_view, 7> names{
      "none", "no_room_tail", "no_room_hit", "allocation", "vote", "failed_load", "injected"};
  return name_in(names, reason);
}

std::string_view name(Purpose purpose) {
  constexpr std::array<std::string_view, 6> names{"load",     "state_target", "private_slot",
                                                  "tracking", "draft",        "forward"};
  return name_in(names, purpose);
}

std::string_view name(InsertCause cause) {
  constexpr std::array<std::string_view, 4> names{"load", "chunk_end", "finish", "retract"};
  return name_in(names, cause);
}

std::string_view name(EvictionCause cause) {
  constexpr std::array<std::string_view, 5> names{"pressure", "asked", "cascade", "flush",
                                                  "roll_back"};
  return name_in(names, cause);
}

std::string_view name(LockHolder holder) {
  constexpr std::array<std::string_view, 4> names{"request", "load", "offload", "copy"};
  return name_in(names, holder);
}

std::string_view event_name(const EventBody& body) {
  return kEventNames[body.index()];
}

std::span<const std::string_view> event_names() {
  return kEventNames;
}

void visit_fields(const EventBody& body, FieldVisitor& visitor) {
  Fields fields(visitor);
  std::visit([&fields](const auto& event) { visit(event, fields); }, body);
}

}  // namespace lockstep
