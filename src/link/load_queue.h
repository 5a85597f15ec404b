// Loads under way: reads from the store, layer by layer, into device rows (semantics 7; stores.md).
//
//   queue() --start_batch()--> reading layers --> all layers landed or failed --> finished()
//   --settle()--> gone
//
// The loads of a step form one batch. Layer l's event fires when each load of the batch has
// finished or failed at l, so a reader of layer l waits for one event. A store object is the row's
// bytes followed by one XXH3 digest per layer; what does not match its digest is refused.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "link/load_rows.h"
#include "link/rank.h"
#include "link/transfer.h"
#include "tree/lock.h"

namespace lockstep {

// The digests that follow a row's bytes in a store object, one per layer of the layout.
std::vector<std::byte> row_digests(const RowLayout& layout, std::span<const std::byte> row);

struct FinishedLoad {
  LoadId id;
  RequestId request;
  bool good = false;
};

class LoadQueue {
 public:
  explicit LoadQueue(const Rank& rank) : rank_(rank) {}
  // Ends the locks: operations that the device has not run yet keep the loads beyond the tree.
  virtual ~LoadQueue();

  LoadId next_id() { return LoadId{next_id_++}; }
  LoadId last_id() const { return LoadId{next_id_ - 1}; }
  // A load of the tail [begin, boundary); `endpoint` stays locked until the load is settled. Under
  // `after_load` nothing is published yet and `endpoint` is no ticket.
  void queue(LoadId id, RequestId request, Pages begin, Tokens boundary,
             std::vector<Transfer> transfers, LockTicket endpoint);
  // The request has no use any more for rows that are still being filled: they go back when the
  // load is settled. REQUIRES: the load is under way.
  void abandon(LoadId id, LoadRows rows);
  // Hands all queued loads to the store as one batch, behind everything that the compute stream has
  // been given.
  void start_batch();
  // Polls the store: layers that have arrived are copied into rows, events fire. Batches come one
  // after the other: a copy of a younger one waits for forwards that may wait for an older one.
  void pump();

  // The load that was queued first, if it is over: loads are settled in the order in which they
  // were queued.
  std::optional<FinishedLoad> oldest_finished() const;
  // The oldest load, which is about to be settled. REQUIRES: there is one.
  Node& oldest_endpoint() const;
  std::span<const Transfer> oldest_transfers() const;
  // The oldest load under way.
  std::optional<LoadId> oldest() const;
  // The ranks' verdict on the oldest finished load. On success flags are set for what LOOKUP
  // proved; its lock ends.
  void settle(LoadId id, bool good);

  // Orders the stream behind layer `layer` of each of these loads; loads that are over order
  // nothing.
  void wait_for_layer(StreamKind stream, LayerId layer, std::span<const LoadId> loads);

  std::size_t size() const { return loads_.size(); }
  // `owned`: no request owns the rows any more.
  void for_each(const std::function<void(const Transfer&, bool owned)>& visit) const;

 protected:
  struct LayerRead {
    StoreTicket ticket = 0;
    bool over = false;
  };
  struct Batch {
    DeviceEvent readers;              // behind whoever may still read the rows
    std::vector<LayerId> layers;      // ascending
    std::vector<DeviceEvent> events;  // one per layer
    std::size_t loads = 0;
    std::vector<std::size_t> open;  // loads that have neither finished nor failed at this layer
  };
  struct Load {
    LoadId id;
    RequestId request;
    Pages begin;
    std::vector<Transfer> transfers;
    LockTicket endpoint;                // none under `after_load`
    std::optional<LoadRows> abandoned;  // no request owns them any more
    std::shared_ptr<Batch> batch;       // null until started
    std::vector<LayerRead> reads;       // one per layer of the batch
    std::vector<OwnedBytes> staging;    // one per transfer: objects, row after row
    std::size_t layers_over = 0;        // failed, or copied on the device
    bool failed = false;
    bool over() const { return batch != nullptr && layers_over == reads.size(); }
  };

  // Whether the bytes that arrived for one layer may be used.
  virtual bool accept(const Load& load, LayerId layer,
                      const std::vector<StoreResult>& results) const;
  // Orders the load stream behind whoever may still read the batch's rows.
  virtual void order_behind_readers(const Batch& batch);
  // Fires a layer's event behind the copies of that layer, once no load of the batch is open there.
  virtual void signal(Batch& batch, std::size_t layer);

  const Rank& rank_;

 private:
  void start(const std::shared_ptr<Load>& load, const std::shared_ptr<Batch>& batch);
  std::vector<GetItem> items(Load& load, LayerId layer) const;
  void arrived(const std::shared_ptr<Load>& load, std::size_t layer,
               const std::vector<StoreResult>& results);
  void copy_layer(const std::shared_ptr<Load>& load, std::size_t layer);
  bool digests_match(const Load& load, LayerId layer) const;

  std::deque<std::shared_ptr<Load>> loads_;
  std::uint64_t next_id_ = 1;
};

}  // namespace lockstep
