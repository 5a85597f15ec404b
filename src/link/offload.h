// OFFLOAD: put what the tree holds and the store does not (semantics 7).
//
//   OffloadPhase walks a chain and decides what to put; OffloadQueue copies rows out behind the
//   forwards that wrote them, hands the objects to the store, and sets flags once the verdict is
//   known.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "link/rank.h"
#include "link/transfer.h"
#include "tree/lock.h"

namespace lockstep {

struct FinishedOffload {
  OffloadId id;
  bool good = false;
};

class OffloadQueue {
 public:
  explicit OffloadQueue(const Rank& rank) : rank_(rank) {}
  // Ends the locks: operations that the device has not run yet keep the offloads beyond the tree.
  virtual ~OffloadQueue();

  // Puts `transfers` of `node`, whose pending marks the caller has set with `id`. The node and the
  // SWA pages that are read stay locked until the offload is settled. If `depends_on` fails, so
  // does this.
  OffloadId next_id() { return OffloadId{next_id_++}; }
  void queue(OffloadId id, Node& node, std::vector<Transfer> transfers,
             std::optional<OffloadId> depends_on);
  // Polls the store.
  void pump();
  // The offload that was queued first, if it is over on this rank.
  std::optional<FinishedOffload> oldest_finished() const;
  // The ranks' verdict on it: marks go, on success flags are set on everything the run has become
  // since.
  void settle(OffloadId id, bool good);

  std::size_t size() const { return offloads_.size(); }
  void for_each(const std::function<void(const Transfer&)>& visit) const;

 protected:
  struct Offload {
    OffloadId id;
    NodeId node;  // keeps its id and its end when it is split
    LockTicket lock;
    PageRange run;  // the node's pages when it was queued
    std::vector<Transfer> transfers;
    std::optional<OffloadId> depends_on;
    bool doomed = false;  // what it depends on has failed
    OwnedBytes rows;      // their bytes once copied out, transfer after transfer
    std::vector<std::vector<std::byte>> objects;  // as put: row bytes and digests
    std::optional<StoreTicket> ticket;
    bool over = false;
    bool good = false;
  };

  // The lock that keeps what is being read.
  virtual LockTicket lock_source(Node& node, const std::vector<Transfer>& transfers);
  // Orders the reads behind the forwards that wrote the rows.
  virtual void order_behind_writers();
  virtual void set_flags(const Offload& offload);
  virtual void clear_marks(const Offload& offload);
  // A node's failure fails those below it.
  virtual void fail_dependents(OffloadId failed);
  // The node that was put, if it is still in the tree.
  Node* endpoint(const Offload& offload) const { return rank_.tree.find(offload.node); }

  const Rank& rank_;

 private:
  void copy_out(const std::shared_ptr<Offload>& offload);
  void put(const std::shared_ptr<Offload>& offload);

  std::deque<std::shared_ptr<Offload>> offloads_;
  std::uint64_t next_id_ = 1;
};

class OffloadPhase {
 public:
  OffloadPhase(const Rank& rank, const TransferPlanner& planner, OffloadQueue& queue)
      : rank_(rank), planner_(planner), queue_(queue) {}
  virtual ~OffloadPhase() = default;

  // Walks the chain that ends at `node`, ancestor first, up to a node whose rows are still being
  // loaded.
  void walk(RequestId request, Node& node);

 protected:
  // The nodes to put, ancestors first.
  virtual std::vector<Node*> chain(Node& node) const;
  // Whether a node may be put, and then what hangs below it: not while its rows are being loaded.
  virtual bool may_put(const Node& node) const { return node.loading.empty(); }
  // What of this node is neither stored nor on its way.
  virtual std::vector<Transfer> missing(const Node& node) const;

  const Rank& rank_;
  const TransferPlanner& planner_;

 private:
  void mark_pending(Node& node, const std::vector<Transfer>& transfers, OffloadId id);

  OffloadQueue& queue_;
};

}  // namespace lockstep
