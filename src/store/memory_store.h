// The in-memory store: the default back end, in process, on the virtual clock, bit-exact on replay.
//
//   objects_: oldest use | ... | newest use      index_: key -> place in that list      batches_:
//   ticket -> batch
//
// All ranks share one store; keys name the rank. A batch takes effect at one instant, when its
// bytes have travelled: the link is shared, so batches queue behind each other on it, and each is
// done `latency` after its last byte. Only then are sources read, targets written, and objects
// looked up, stored or evicted to make room. So an object can be found by exists() and be gone when
// its read is due. Normally that instant is also when the batch is reported as done; an injected
// fault can hold the report back, for a time (late) or behind those of later batches (reordered).
//
// Eviction takes the least recently used object without a running lease; get and put count as use,
// exists does not. With leases, a read protects its object for `lease` from its start; a read that
// is due later than that fails, and leaves its target untouched.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "device/cost_model.h"
#include "store/store.h"

namespace lockstep {

struct MemoryStoreConfig {
  Bytes capacity{256ll << 20};
  LinkCost link{Nanoseconds{50'000}, 45.0};
  std::optional<Nanoseconds> lease;  // none: reads do not depend on time
};

// What happens to the whole batch of an item: the longest times count, and any `reordered`.
struct BatchFault {
  Nanoseconds delay;       // it takes effect that much later
  Nanoseconds late;        // it takes effect in time, but is reported as done that much later
  bool reordered = false;  // it is reported only after the later batches that are under way then
  void add(const BatchFault& other);
};
// What happens to one item of a batch besides the normal course.
struct GetFault {
  std::optional<StoreStatus> status;         // this instead of reading; the target stays untouched
  std::optional<Bytes> short_to;             // only so many bytes arrive: short_read
  std::optional<std::uint64_t> corrupt_bit;  // flipped in what arrived, modulo its size
  BatchFault batch;
};
struct PutFault {
  std::optional<StoreStatus> status;  // this instead of storing
  BatchFault batch;
};

// Asked once per key or item, in order, when the call is made. The default injects nothing.
class StoreFaults {
 public:
  virtual ~StoreFaults() = default;
  virtual bool on_exists(const ObjectKey& key, bool present);
  virtual GetFault on_get(const GetItem& item);
  virtual PutFault on_put(const PutItem& item);
};

class MemoryStore : public Store {
 public:
  // `timers`, `sink` and `faults` outlive the store; no faults: null.
  MemoryStore(Timers& timers, EventSink& sink, MemoryStoreConfig config,
              StoreFaults* faults = nullptr);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  std::vector<bool> exists(std::span<const ObjectKey> keys) override;
  StoreTicket get(std::vector<GetItem> items) override;
  StoreTicket put(std::vector<PutItem> items) override;
  std::optional<std::vector<StoreResult>> poll(StoreTicket ticket) override;
  // Also what is under a lease; a running read of it finds nothing. Absent keys are passed over.
  void remove(std::span<const ObjectKey> keys) override;
  // Adds a listener, as ranks share the store. It stays for as long as the store.
  void on_progress(std::function<void()> action) override;

  // The keys of all objects, least recently used first.
  std::vector<ObjectKey> keys() const;
  Bytes used() const { return used_; }

  // The store restarts: running batches fail when they are due, and without its data every object
  // goes.
  void restart(bool keep_data);
  // The client is gone (its engine restarts): tickets end, running batches neither read nor write
  // its memory any more.
  void drop_batches();

 private:
  struct Object {
    ObjectKey key;
    std::vector<std::byte> bytes;
    Nanoseconds leased_until;  // 0: no read has had a lease on it
  };
  using Objects = std::list<Object>;

  struct GetWork {
    GetItem item;
    GetFault fault;
    bool leased = false;  // the object was there when the read started, and leases are on
  };
  struct PutWork {
    PutItem item;
    PutFault fault;
  };
  struct Batch {
    std::vector<GetWork> gets;
    std::vector<PutWork> puts;
    Nanoseconds lease_end;  // of the gets
    BatchFault fault;
    bool store_lost = false;  // the store restarted before it took effect
    bool has_effect = false;
    std::optional<StoreTicket> behind;  // reordered: those up to this one are reported first
    bool done = false;
    std::vector<StoreResult> results;
  };
  // What timers hold instead of `this`; empty once the store is gone.
  struct Lifeline {
    MemoryStore* store = nullptr;
  };

  StoreTicket start(Batch batch, Bytes travelling);
  void after(Nanoseconds delay, StoreTicket ticket, void (MemoryStore::*action)(StoreTicket));
  void finish(StoreTicket ticket);
  void report(StoreTicket ticket);
  // Whether a later batch up to `last`, which is not held back itself, is still to be reported.
  bool is_overtaken(StoreTicket ticket, StoreTicket last) const;
  void report_held_back();
  void mark_done(Batch& batch);
  StoreResult finish_get(const GetWork& work, Nanoseconds lease_end);
  StoreResult finish_put(const PutWork& work);

  Object* find(std::string_view key);
  void touch(std::string_view key);
  // Evicts until `size` more bytes fit; false, and nothing evicted, if that cannot be.
  bool make_room(Bytes size);
  void erase(Objects::iterator object);

  Timers& timers_;
  EventSink& sink_;
  MemoryStoreConfig config_;
  StoreFaults no_faults_;
  StoreFaults& faults_;
  Objects objects_;
  std::unordered_map<std::string_view, Objects::iterator> index_;  // views of the objects' own keys
  Bytes used_;
  Nanoseconds link_free_at_;
  std::map<StoreTicket, Batch> batches_;
  StoreTicket last_ticket_ = 0;
  std::vector<std::function<void()>> listeners_;
  std::shared_ptr<Lifeline> lifeline_;
};

// The rank that a key names ("<hash>/<component>/3of4": 3); rank 0 if it is no key of that form.
RankId rank_of(std::string_view key);

}  // namespace lockstep
