#include "sim/defects/offload_defects.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "link/stored_flags.h"
#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

// Whatever stands above it.
void flag_full_unseen(const Rank& rank, Node& node) {
  if (node.full_stored) return;
  node.full_stored = true;
  rank.emit(kNoRequest, StoredFlagSet{node.id, Component::full, {node.begin, node.end()}});
}

class NotOrdered : public OffloadQueue {
 public:
  using OffloadQueue::OffloadQueue;

 protected:
  void order_behind_writers() override {}
};

// The event that stands for a forward comes in front of it.
class EventBeforeForward : public engine::Executor {
 public:
  using Executor::Executor;

  void begin(const std::shared_ptr<engine::Forward>& forward, std::size_t rank) override {
    early_ = DeviceEvent();
    device_.record(StreamKind::compute, early_);
    Executor::begin(forward, rank);
  }
  DeviceEvent end(const std::shared_ptr<engine::Forward>& forward, std::size_t rank) override {
    Executor::end(forward, rank);
    return early_;
  }

 private:
  DeviceEvent early_;
};

// A wait left out alone changes nothing: the engine takes a forward's results only behind its
// event.
class BeforeWrittenParts : public WithExecutor<EventBeforeForward> {
 public:
  std::unique_ptr<OffloadQueue> offload_queue(const Rank& rank) const override {
    return std::make_unique<NotOrdered>(rank);
  }
};

// The INSERT of a load starts an OFFLOAD, like any other, when the first bytes have come.
class OffloadsWhatItLoads : public Linker {
 public:
  using Linker::Linker;

  void commit_load(RequestId id, Tokens boundary) override {
    Linker::commit_load(id, boundary);
    loading_.insert(id);
  }
  void pump() override {
    Linker::pump();
    for (RequestId id : std::exchange(loading_, {})) offload(state(id));
  }

 protected:
  void give_back(RequestState& request) override {
    loading_.erase(request.id);
    Linker::give_back(request);
  }

 private:
  std::set<RequestId> loading_;
};

class PutsWhatLoads : public OffloadPhase {
 public:
  using OffloadPhase::OffloadPhase;

 protected:
  bool may_put(const Node&) const override { return true; }
};

class OfUnlandedParts : public WithLinker<OffloadsWhatItLoads> {
 public:
  std::unique_ptr<OffloadPhase> offload_phase(const Rank& rank, const TransferPlanner& planner,
                                              OffloadQueue& queue) const override {
    return std::make_unique<PutsWhatLoads>(rank, planner, queue);
  }
};

class NoLock : public OffloadQueue {
 public:
  using OffloadQueue::OffloadQueue;

 protected:
  LockTicket lock_source(Node&, const std::vector<Transfer>&) override { return {}; }
};

class ClaimsOnQueue : public OffloadQueue {
 public:
  using OffloadQueue::OffloadQueue;

 protected:
  LockTicket lock_source(Node& node, const std::vector<Transfer>& transfers) override {
    for (const Transfer& transfer : transfers) {
      if (transfer.component == Component::full) flag_full(rank_, node);
      if (transfer.component == Component::swa) flag_swa(rank_, node, transfer.pages);
      if (transfer.component == Component::mamba) flag_state(rank_, node);
    }
    return OffloadQueue::lock_source(node, transfers);
  }
};

class SplitForgets : public OffloadQueue {
 public:
  using OffloadQueue::OffloadQueue;

 protected:
  void set_flags(const Offload& offload) override {
    Node* lower = endpoint(offload);
    if (lower == nullptr) return;
    for (const Transfer& transfer : offload.transfers) {
      if (transfer.component == Component::full) flag_full_unseen(rank_, *lower);
      if (transfer.component == Component::swa) flag_swa(rank_, *lower, transfer.pages);
      if (transfer.component == Component::mamba) flag_state(rank_, *lower);
    }
  }
  void clear_marks(const Offload& offload) override {
    Node* lower = endpoint(offload);
    if (lower == nullptr) return;
    for (const Transfer& transfer : offload.transfers) {
      if (transfer.component == Component::full) lower->full_pending.reset();
      if (transfer.component == Component::mamba) lower->state_pending = false;
      if (transfer.component == Component::swa) std::ranges::fill(lower->swa_pending, 0);
    }
  }
};

class FirstHash : public TransferPlanner {
 public:
  Transfer state(std::span<const PageHash> run, Pages end, Row row) const override {
    return TransferPlanner::state(run.first(1), end, row);
  }
};

class Hole : public OffloadQueue {
 public:
  using OffloadQueue::OffloadQueue;

 protected:
  void fail_dependents(OffloadId) override {}
  void set_flags(const Offload& offload) override {
    Node* node = endpoint(offload);
    const bool has_full = std::ranges::any_of(offload.transfers, [](const Transfer& transfer) {
      return transfer.component == Component::full;
    });
    if (node != nullptr && has_full) flag_full_unseen(rank_, *node);
    OffloadQueue::set_flags(offload);
  }
};

class OneFlag : public OffloadPhase {
 public:
  using OffloadPhase::OffloadPhase;

 protected:
  std::vector<Transfer> missing(const Node& node) const override {
    return node.full_stored ? std::vector<Transfer>{} : OffloadPhase::missing(node);
  }
};

constexpr std::array kOffloadDefects{
    Defect{"offload.before_written", "C04 C05", "H1", "",
           "the put starts before the forward's event", make<BeforeWrittenParts>},
    Defect{"offload.of_unlanded", "C04", "H1", "S3", "a node is offloaded while its own load runs",
           make<OfUnlandedParts>},
    Defect{"offload.no_lock", "C07", "C1", "H1", "a node is freed while it is read",
           make<WithOffloadQueue<NoLock>>},
    Defect{"offload.claims_on_queue", "C25", "S1", "",
           "the stored flag is set when queued, and kept on failure",
           make<WithOffloadQueue<ClaimsOnQueue>>},
    Defect{"offload.split_forgets", "C11", "S2", "C5",
           "only one part is flagged after a split; the pending mark stays",
           make<WithOffloadQueue<SplitForgets>>},
    Defect{"offload.first_hash", "C01", "B5", "",
           "the state is stored under the node's first page hash",
           make<WithTransferPlanner<FirstHash>>},
    Defect{"offload.hole", "C25", "S2", "", "a child is stored although the parent failed",
           make<WithOffloadQueue<Hole>>},
    Defect{"offload.one_flag", "C25", "R2", "",
           "a later checkpoint of a stored node is never offloaded, under per_component",
           make<WithOffloadPhase<OneFlag>>},
};

}  // namespace

std::span<const Defect> offload_defects() {
  return kOffloadDefects;
}

}  // namespace lockstep::sim::defects
