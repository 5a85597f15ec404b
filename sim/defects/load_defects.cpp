#include "sim/defects/load_defects.h"

#include <algorithm>
#include <array>
#include <map>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class IgnoreFailure : public LoadQueue {
 public:
  using LoadQueue::LoadQueue;

 protected:
  bool accept(const Load&, LayerId, const std::vector<StoreResult>&) const override { return true; }
};

class ShortOk : public LoadQueue {
 public:
  using LoadQueue::LoadQueue;

 protected:
  bool accept(const Load& load, LayerId layer,
              const std::vector<StoreResult>& results) const override {
    const bool is_short = std::ranges::any_of(results, [](const StoreResult& result) {
      return result.status == StoreStatus::short_read;
    });
    return is_short || LoadQueue::accept(load, layer, results);
  }
};

// Each rank goes by its own outcome.
class RankLocalAbort : public Linker {
 public:
  using Linker::Linker;

  std::vector<RequestId> settle_load(LoadId load, bool /*voted*/) override {
    return Linker::settle_load(load, oldest_finished_load()->good);
  }
};

// The host says that a layer has landed when its bytes have arrived from the store.
class EventBeforeBytes : public LoadQueue {
 public:
  using LoadQueue::LoadQueue;

 protected:
  void signal(Batch& batch, std::size_t layer) override {
    if (batch.open[layer] == 0) rank_.device.signal(batch.events[layer]);
  }
};

class FirstDoneIsDone : public LoadQueue {
 public:
  using LoadQueue::LoadQueue;

 protected:
  void signal(Batch& batch, std::size_t layer) override {
    const bool is_first = batch.open[layer] + 1 == batch.loads;
    if (is_first) rank_.device.record(StreamKind::load, batch.events[layer]);
  }
};

class OverwritesReader : public LoadQueue {
 public:
  using LoadQueue::LoadQueue;

 protected:
  void order_behind_readers(const Batch&) override {}
};

// The requests start again, what they shared stays in the tree.
class NoRollBack : public RollBackPhase {
 public:
  using RollBackPhase::RollBackPhase;

  std::vector<TornRows> run(Node&, std::span<const Transfer>) override { return {}; }
};

class AbortLeaks : public LoadPhase {
 public:
  using LoadPhase::LoadPhase;

  void abort(RequestState& request) override {
    request.load.full.disown();
    LoadPhase::abort(request);
  }
};

class AbortFreesQ : public LoadPhase {
 public:
  using LoadPhase::LoadPhase;

  void abort(RequestState& request) override {
    const std::vector<Row> slot(request.load.private_slot.rows().begin(),
                                request.load.private_slot.rows().end());
    LoadPhase::abort(request);
    if (!slot.empty()) rank_.pools.pool(Component::mamba).release(slot);
  }
};

// The ticket of MATCH goes once LOOKUP has found a tail.
class AnchorUnlocked : public Linker {
 public:
  using Linker::Linker;

  std::vector<Tokens> lookup(RequestId id, std::span<const TokenId> tokens) override {
    const std::vector<Tokens> restorable = Linker::lookup(id, tokens);
    RequestState& request = state(id);
    if (!restorable.empty() && request.lock.open()) {
      anchor_[id] = request.node->id;
      request.lock.release();
    }
    return restorable;
  }

  // The tail was given up after all, and the hit may be gone.
  void commit_hit(RequestId id) override {
    RequestState& request = state(id);
    if (request.lock.open() || rank().tree.find(anchor_[id]) != nullptr) {
      return Linker::commit_hit(id);
    }
    request.node = nullptr;
    request.boundary = request.device_hit;
    request.own_from = request.swa_own_from = rank().geometry.pages(request.boundary);
    const std::size_t pages = rank().geometry.pages(request.boundary).index();
    request.full.assign(pages, kTrapRow);
    if (rank().geometry.has_swa) request.swa.assign(pages, kTrapRow);
    rank().emit(id, Committed{request.device_hit, request.boundary, anchor_[id], kTrapRow,
                              request.q.empty() ? kTrapRow : request.q.row(), false, false,
                              request.commit});
  }

 private:
  std::map<RequestId, NodeId> anchor_;
};

constexpr std::array kLoadDefects{
    Defect{"load.ignore_failure", "C09", "D1", "", "a failed read is treated as data",
           make<WithLoadQueue<IgnoreFailure>>},
    Defect{"load.short_ok", "C09", "D1", "", "a short read is accepted",
           make<WithLoadQueue<ShortOk>>},
    Defect{"load.rank_local_abort", "C24", "K1", "", "only the failing rank recomputes",
           make<WithLinker<RankLocalAbort>>},
    Defect{"load.event_before_bytes", "C06", "H1", "", "a layer's event is signalled early",
           make<WithLoadQueue<EventBeforeBytes>>},
    Defect{"load.first_done_is_done", "C06", "H1", "", "a batch is complete when its first load is",
           make<WithLoadQueue<FirstDoneIsDone>>},
    Defect{"load.overwrites_reader", "C05", "H1", "",
           "not fenced behind the last reader of a reused row",
           make<WithLoadQueue<OverwritesReader>>},
    Defect{"load.no_rollback", "C09", "D1", "", "a failed load stays published",
           make<WithRollBackPhase<NoRollBack>>},
    Defect{"load.abort_leaks", "C14", "C1", "C5",
           "rows of earlier components are not freed on abort", make<WithLoadPhase<AbortLeaks>>},
    Defect{"load.abort_frees_q", "C15", "C2", "B7", "abort frees the request's own slot too",
           make<WithLoadPhase<AbortFreesQ>>},
    Defect{"load.anchor_unlocked", "C10", "B2", "C3",
           "the device-hit node is not locked between MATCH and LOAD",
           make<WithLinker<AnchorUnlocked>>},
};

}  // namespace

std::span<const Defect> load_defects() {
  return kLoadDefects;
}

}  // namespace lockstep::sim::defects
