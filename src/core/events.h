// Everything that the system under test reports while it runs (pushed half of observation,
// semantics 9).
//
// Events are facts, in the order in which they happened on the virtual clock; spans in them are
// valid only during on_event(). The oracle judges them, coverage counts them, the run's digest
// folds every field of every one of them. An event belongs to one rank unless its comment says
// "engine": those are reported once, with rank 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/component.h"
#include "core/hash.h"
#include "core/ids.h"

namespace lockstep {

// Half-open range of pages counted from token 0 of the sequence.
struct PageRange {
  Pages begin;
  Pages end;
  bool empty() const { return begin == end; }
  Pages size() const { return end - begin; }
  auto operator<=>(const PageRange&) const = default;
};

// ---------------------------------------------------------------- requests (engine)

struct StepBegun {};  // engine: a new engine step; its number is in the header

struct RequestSubmitted {  // engine: also when a restarted engine takes an unfinished request again
                           // (`resumed`)
  std::span<const TokenId> prompt;
  Tokens decode;
  std::optional<std::string_view> extra_key;
  std::optional<std::string_view> cache_salt;
  bool resumed = false;  // `prompt` then holds what had been generated so far, too
};

struct RequestRefused {  // engine: does not fit the empty pools
  std::string_view reason;
};

struct TokenAccepted {  // engine: the request generated `token`; it stands at `position` of prompt
                        // + output
  TokenId token;
  Tokens position;
};

struct RequestRetracted {
};  // engine: rows and slots are back; it waits again with prompt + generated tokens
struct RequestRestarted {};  // engine: a load on its path failed; what it computed since is
                             // dropped, it waits again and keeps Q
struct RequestFinished {};   // engine: all tokens generated, finish handled
struct RequestCancelled {};  // engine
struct CacheFlushed {};      // per rank: the tree is empty
struct EngineRestarted {
};  // engine: device and tree are new; the store is kept or not, see StoreCleared

// ---------------------------------------------------------------- phases

// MATCH. `device_hit` = d. `full_matched` = F: length of FULL rows matched from token 0.
struct Matched {
  Tokens device_hit;
  Tokens full_matched;
  NodeId node;
  bool query_store = true;  // false: the mark "does not query the store again" is set
};

// LOOKUP: every restorable length of this rank in (device_hit, len-1], ascending, in tokens from 0.
struct LookedUp {
  Tokens device_hit;
  std::span<const Tokens> restorable;
};

struct Voted {  // engine: the largest length common to all ranks; `boundary` == `device_hit` is a
                // miss
  Tokens device_hit;
  Tokens boundary;
};

// Why a request resumes below what was restorable.
enum class GiveUp { none, no_room_tail, no_room_hit, allocation, vote, failed_load, injected };
std::string_view name(GiveUp reason);

struct GaveUp {  // engine: resumes at `boundary` although `possible` was restorable
  Tokens possible;
  Tokens boundary;
  GiveUp reason = GiveUp::none;
};

// Why rows are taken.
enum class Purpose { load, state_target, private_slot, tracking, draft, forward };
std::string_view name(Purpose purpose);

struct AllocationFailed {  // after eviction and retry
  Component component = Component::full;
  Purpose purpose = Purpose::load;
  Rows wanted;
  Rows free;       // rows on the free list then
  Rows evictable;  // rows that eviction could still have freed
  bool injected = false;
};

struct LoadPlanned {  // LOAD took all rows: `full` and `swa` end at `boundary`; `state` is T (trap:
                      // no MAMBA component)
  Tokens device_hit;
  Tokens boundary;
  std::span<const Row> full;
  std::span<const Row> swa;
  Row state = kTrapRow;
};

struct LoadAborted {  // ABORT gave back what LOAD had taken of this component (one event each, in
                      // order of release)
  Component component = Component::full;
  std::span<const Row> rows;
};

struct Prepared {  // PREPARE: the request's SWA cursor after it was raised
  Tokens cursor;
};

enum class InsertCause { load, chunk_end, finish, retract };
std::string_view name(InsertCause cause);

// INSERT of [0, end). Ranges are what came in with rows: adopted by the tree, or duplicates; SWA
// from `cursor` up.
struct Inserted {
  InsertCause cause = InsertCause::load;
  Tokens end;
  Tokens fed;      // tokens that the request had fed (load: end)
  Pages incoming;  // first page that came in with a FULL row; below it the rows were the tree's
                   // already
  Tokens cursor;
  NodeId node;  // the canonical node
  std::span<const PageRange> full_adopted;
  std::span<const PageRange> full_duplicate;
  std::span<const PageRange> swa_adopted;
  std::span<const PageRange> swa_duplicate;
  std::span<const Row> full_adopted_rows;  // in order of full_adopted
  std::span<const Row> swa_adopted_rows;   // in order of swa_adopted
  Row state = kTrapRow;                    // the state that came in; trap: none
  Tokens state_depth;                      // the depth that the linker labels it with
  bool mamba_exist = false;  // the canonical node had a state: the incoming one is a duplicate
};

// COMMIT: one of the three kinds of commit of semantics 4. Without any hit, `boundary` is 0 and
// `source` the trap row.
struct Committed {
  Tokens device_hit;
  Tokens boundary;
  NodeId node;            // canonical node at `boundary`
  Row source = kTrapRow;  // the COW source
  Row q = kTrapRow;       // the request's private slot
  bool mamba_exist = false;
  bool from_load = false;
  CommitId commit;
};

// One component's part of a load or an offload. `hashes` name the pages (the last page's for
// MAMBA), one per row.
struct TransferView {
  Component component = Component::full;
  std::span<const Row> rows;
  std::span<const PageHash> hashes;
  PageRange pages;  // what the rows hold; MAMBA: the page that ends at the checkpoint
};

struct LoadQueued {
  LoadId load;
  Tokens boundary;
  std::span<const TransferView> transfers;
};
struct LoadStarted {  // its batch has been handed to the store
  LoadId load;
};
struct LayerLanded {  // the bytes of one layer of this load are in its rows
  LoadId load;
  LayerId layer;
};
struct LoadFinished {  // voted: all ranks, all transfers (engine decision, reported per rank)
  LoadId load;
  bool good = false;
};

struct CopyExecuted {  // the device copied Q <- source, all layers; reported when the last piece
                       // ran
  Row source = kTrapRow;
  Row q = kTrapRow;
  CommitId commit;  // that asked for it; the request may have left that one behind
};
struct SlotCleared {  // the device cleared Q
  Row q = kTrapRow;
  CommitId commit;
};

// ---------------------------------------------------------------- forwards

struct SnapshotView {
  Tokens depth;         // the state after exactly this many tokens ...
  Row slot = kTrapRow;  // ... was written here
};

// One request's part of a forward: tokens [start, start + tokens.size()) of its sequence.
struct SegmentView {
  RequestId request;
  Tokens start;
  std::span<const TokenId> tokens;  // kTokenOnDevice: a forward in flight computes it
  std::span<const Row> full;        // page table from page 0
  std::span<const Row> swa;         // page table from page 0; trap where released or absent
  Row q = kTrapRow;
  std::span<const SnapshotView> snapshots;
  // How many of its last tokens are guesses; ForwardAccepted: were guessed right, and Q is the slot
  // that holds the state after them.
  Tokens drafts;
  std::span<const std::byte>
      outputs;  // ForwardAccepted: one model output per token (logits, or the hidden word)
};

struct ForwardLaunched {
  ForwardId forward;
  std::span<const SegmentView> segments;
};
struct ForwardAccepted {  // the engine takes the results
  ForwardId forward;
  std::span<const SegmentView> segments;
};

struct CheckpointTracked {  // a forward that was accepted left this checkpoint in a tracking slot
  Tokens depth;
  Row slot = kTrapRow;
};

// ---------------------------------------------------------------- pools and tree

struct RowsAllocated {
  Component component = Component::full;
  Purpose purpose = Purpose::load;
  std::span<const Row> rows;
};
struct RowsFreed {
  Component component = Component::full;
  std::span<const Row> rows;
};
struct RowsReleased {  // window release: SWA rows of a request's own, about to be freed; the cursor
                       // afterwards
  std::span<const Row> rows;
  Tokens cursor;
};

struct NodeCreated {
  NodeId node;
  NodeId parent;
  Pages begin;
  Pages end;
};
struct NodeSplit {  // `lower` keeps its id and its end; `upper` is new and ends at `at`
  NodeId upper;
  NodeId lower;
  Pages at;
};
struct NodeRemoved {
  NodeId node;
};

enum class EvictionCause { pressure, asked, cascade, flush, roll_back };
std::string_view name(EvictionCause cause);

struct Evicted {  // rows of one component that left the tree at this node
  NodeId node;
  Component component = Component::full;
  PageRange pages;  // MAMBA: empty range that ends at the node's end
  std::span<const Row> rows;
  EvictionCause cause = EvictionCause::pressure;
};

enum class LockHolder { request, load, offload, copy };
std::string_view name(LockHolder holder);

struct LockTaken {  // FULL on the path from `node` to the root, SWA on `swa`, MAMBA on `node` if
                    // `mamba`
  LockId lock;
  LockHolder holder = LockHolder::request;
  NodeId node;
  PageRange swa;
  bool mamba = false;
};
struct LockReleased {
  LockId lock;
};

// ---------------------------------------------------------------- offload and store

struct OffloadQueued {  // puts of one node
  OffloadId offload;
  NodeId node;
  std::span<const TransferView> transfers;
};
struct OffloadFinished {  // voted over all transfers and ranks
  OffloadId offload;
  bool good = false;
};
struct OffloadWalked {  // an OFFLOAD went over the chain that ends at this node
  NodeId node;
};
struct StoredFlagSet {  // the linker believes that the store holds this now
  NodeId node;
  Component component = Component::full;
  PageRange pages;
};

struct StorePut {  // the store accepted a complete object (or already had it)
  std::string_view key;
  bool stored = false;  // false: the key existed, or there was no room
  bool accepted = false;
};
struct StoreRemoved {  // evicted, expired or removed
  std::string_view key;
};
struct StoreCleared {};  // engine: restarted without its data

// ---------------------------------------------------------------- injected by a simulator

struct RowsWithdrawn {  // free rows that left their pool for good: nobody owns them any more
  Component component = Component::full;
  std::span<const Row> rows;
};
struct FalseAnswer {  // asked whether it has this object, the store said `present`, which is false
  std::string_view key;
  bool present = false;
};

using EventBody =
    std::variant<StepBegun, RequestSubmitted, RequestRefused, TokenAccepted, RequestRetracted,
                 RequestRestarted, RequestFinished, RequestCancelled, CacheFlushed, EngineRestarted,
                 Matched, LookedUp, Voted, GaveUp, AllocationFailed, LoadPlanned, LoadAborted,
                 Prepared, Inserted, Committed, LoadQueued, LoadStarted, LayerLanded, LoadFinished,
                 CopyExecuted, SlotCleared, ForwardLaunched, ForwardAccepted, CheckpointTracked,
                 RowsAllocated, RowsFreed, RowsReleased, NodeCreated, NodeSplit, NodeRemoved,
                 Evicted, LockTaken, LockReleased, OffloadQueued, OffloadFinished, OffloadWalked,
                 StoredFlagSet, StorePut, StoreRemoved, StoreCleared, RowsWithdrawn, FalseAnswer>;

struct Event {
  StepId step;
  Nanoseconds time;
  RankId rank;
  RequestId request = kNoRequest;
  EventBody body;
};

// "matched", "looked_up", ...: the names that a scenario's expect.events and the event log use.
std::string_view event_name(const EventBody& body);
// All of them, in the order of EventBody.
std::span<const std::string_view> event_names();

// Receives each field of an event once, in declaration order; an absent optional is not visited. A
// list of records (segments, snapshots, transfers) is its size, then the fields of each record;
// begin_record() and end_record() tell where a record lies for those who want to know.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void number(std::string_view field, std::int64_t value) = 0;
  virtual void text(std::string_view field, std::string_view value) = 0;
  virtual void numbers(std::string_view field, std::span<const std::int64_t> values) = 0;
  virtual void bytes(std::string_view field, std::span<const std::byte> value) = 0;
  virtual void records(std::string_view list, std::int64_t size) { number(list, size); }
  virtual void begin_record() {}
  virtual void end_record() {}
};
void visit_fields(const EventBody& body, FieldVisitor& visitor);

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(const Event& event) = 0;
};

// Where the system under test reports to; the owner stamps step and time and passes events on to
// its observers.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void emit(RankId rank, RequestId request, EventBody body) = 0;
};

}  // namespace lockstep
