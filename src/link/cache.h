// One rank's cache as the engine sees it: the narrow interface that another linker can implement,
// too.
//
// The engine calls every rank with the same arguments in the same order and combines what they
// answer (link/rank_vote.h). Life of a request: open, (match, lookup)*, [load, commit_load |
// commit_hit | commit_empty], (reserve, track, begin_forward, before_layer, accepted, chunk_end)*,
// finish, close. drop_match and close give back whatever is held.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/inspect.h"
#include "link/load.h"
#include "link/load_queue.h"
#include "link/offload.h"

namespace lockstep {

// The parts of a request's namespace that it brings itself.
struct RequestNamespace {
  std::optional<std::string> extra_key;
  std::optional<std::string> cache_salt;
};

struct MatchResult {
  Tokens device_hit;
  Tokens full_matched;
};

// Page tables (from page 0, trap where there is no row) and the private slot; valid until the
// request's next call.
struct RequestTables {
  std::span<const Row> full;
  std::span<const Row> swa;
  Row q = kTrapRow;
  std::span<const LoadId> awaited;  // loads under way that fill rows of these tables
  // Of a forward over drafts: where the states inside it go.
  std::vector<SnapshotView> columns;
};

class Cache {
 public:
  virtual ~Cache() = default;

  virtual void open(RequestId request, const RequestNamespace& names) = 0;
  // The request's end, its retraction too: everything it holds goes back exactly once.
  virtual void close(RequestId request) = 0;

  // MATCH: the deepest device hit <= tokens.size() - 1, locked. Replaces an earlier result.
  virtual MatchResult match(RequestId request, std::span<const TokenId> tokens,
                            bool query_store) = 0;
  // LOOKUP: every length in (device hit, tokens.size() - 1] that this rank can restore, ascending.
  virtual std::vector<Tokens> lookup(RequestId request, std::span<const TokenId> tokens) = 0;
  // Gives the lock of a match back; the request has no device hit any more.
  virtual void drop_match(RequestId request) = 0;

  // Whether the MAMBA slots for a resume at `boundary` can be had (semantics 4, Admission).
  virtual bool fits(RequestId request, Tokens boundary) const = 0;
  // LOAD: takes every row for the tail [device hit, boundary), one stage after the other, in order.
  // False: not to be had (an ordinary miss), abort() follows on every rank.
  virtual bool load(RequestId request, Tokens boundary, LoadStage stage) = 0;
  // ABORT: gives back what load() took, in reverse order.
  virtual void abort(RequestId request) = 0;
  // Takes Q for a resume without a tail. False: none can be had; then no rank keeps one.
  virtual bool secure_private_slot(RequestId request) = 0;
  virtual void release_private_slot(RequestId request) = 0;
  // `publish` = after_load: queues the transfers of all rows that load() took; commit_load()
  // follows when they are settled as good, reset() when not. The same id on every rank.
  virtual LoadId begin_load(RequestId request, Tokens boundary) = 0;
  // PREPARE, INSERT, COMMIT after load(), or under `after_load` after its transfers; COMMIT alone
  // without a tail, or without any hit.
  virtual void commit_load(RequestId request, Tokens boundary) = 0;
  virtual void commit_hit(RequestId request) = 0;
  virtual void commit_empty(RequestId request) = 0;
  // Starts all queued loads as one batch.
  virtual void start_loads() = 0;

  // Before a forward over [start, start + count): releases SWA pages, then takes FULL and SWA
  // pages. Returns how many of the tokens have pages after eviction; perhaps none.
  virtual Tokens reserve(RequestId request, Tokens start, Tokens count) = 0;
  // Gives back own pages beyond [0, end): another rank has fewer.
  virtual void trim(RequestId request, Tokens end) = 0;
  // The snapshots that the forward over [start, end) is to write.
  virtual std::vector<SnapshotView> track(RequestId request, Tokens start, Tokens end,
                                          bool decode) = 0;
  // Another rank could not track this depth: the slot goes back.
  virtual void untrack(RequestId request, Tokens depth) = 0;
  // The next forward over [start, ...) computes `drafts` guessed tokens behind its first one: takes
  // the slots for the states inside it. Returns for how many guesses there are slots; called again
  // with fewer where another rank has fewer.
  virtual Tokens draft(RequestId request, Tokens start, Tokens drafts) = 0;
  // The tables for the forward that is about to be launched; fixes which loads it must wait for.
  virtual RequestTables begin_forward(RequestId request) = 0;
  // Enqueues on the compute stream what must come before layer `layer` of a forward of this
  // request: waits for loads, the copy into Q, or its clearing by `clear`. Called once per layer,
  // ascending.
  virtual void before_layer(RequestId request, LayerId layer,
                            const std::function<void(std::span<std::byte>)>& clear) = 0;
  // The results of the request's forward have been taken up to `end`; forwards behind it may be in
  // flight already. Behind `end` of a forward over drafts is what was rejected: the state after
  // `end` is the request's.
  virtual void accepted(RequestId request, Tokens end, bool decode) = 0;

  // Donates tracked checkpoints after a prompt chunk; after the last one the chain is offloaded.
  virtual void chunk_end(RequestId request, std::span<const TokenId> tokens, Tokens fed,
                         bool last_chunk) = 0;
  // Donates the newest checkpoint <= fed and offloads the chain; close() follows. False: rows on
  // the path are still being loaded, nothing was done, ask again after the verdict.
  virtual bool finish(RequestId request, std::span<const TokenId> tokens, Tokens fed) = 0;
  // Donates as finish() does, unless rows on the path are being loaded; close() follows, then
  // open() again.
  virtual void retract(RequestId request, std::span<const TokenId> tokens, Tokens fed) = 0;

  // Transfers: polled, then settled in the order in which they were queued, with the ranks' common
  // verdict.
  virtual void pump() = 0;
  virtual std::optional<LoadId> oldest_load() const = 0;  // under way or finished
  virtual std::optional<FinishedLoad> oldest_finished_load() const = 0;
  // A bad load is rolled back. Returns its sharers on this rank; each has been reset(). Under
  // `after_load` there is nothing to roll back.
  virtual std::vector<RequestId> settle_load(LoadId load, bool good) = 0;
  virtual std::optional<FinishedOffload> oldest_finished_offload() const = 0;
  virtual void settle_offload(OffloadId offload, bool good) = 0;
  // The request starts again from nothing: locks, tables, own rows and checkpoints go back, only Q
  // stays.
  virtual void reset(RequestId request) = 0;
  // A load or an offload is not settled, or rows of a failed load are not back in their pools: more
  // rows come by waiting.
  virtual bool transfers_pending() const = 0;
  // Quarantined entries that no stream and no load refers to any more, oldest first; the ranks
  // release equally many.
  virtual std::size_t releasable_quarantine() const = 0;
  virtual void release_quarantine(std::size_t entries) = 0;
  // Rows on the request's locked path are still being filled, by its own load or another's.
  virtual bool path_is_loading(RequestId request) const = 0;

  // Evicts at least `count` rows of `component`, least recently used first, as far as they are
  // unlocked.
  virtual void evict(Component component, Rows count) = 0;
  // Evicts what the sequence `tokens` has at `at`, if it is unlocked: the leaf whose page ends
  // there, the SWA rows of the node that holds that page, or the state there. Nothing if `tokens`
  // end before.
  virtual void evict_at(Component component, const RequestNamespace& names,
                        std::span<const TokenId> tokens, Tokens at) = 0;
  // The pool keeps `keep` rows: free and evictable ones go now, the rest as rows come free. Never
  // undone.
  virtual void shrink(Component component, Rows keep) = 0;
  // Empties the tree. REQUIRES: no request holds a lock, no transfer is pending.
  virtual void flush() = 0;

  virtual const Inspector& inspector() const = 0;
};

}  // namespace lockstep
