#include "sim/defects/cow_defects.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class CopyWaitsForNothing : public CowPhase {
 public:
  using CowPhase::CowPhase;

 protected:
  void wait_for_source(const RequestState&, LayerId, std::span<const LoadId>) override {}
};

// Which requests have queued a load of their own.
using Loaders = std::shared_ptr<std::set<RequestId>>;

class NotesLoaders : public CommitPhase {
 public:
  NotesLoaders(const Rank& rank, const TransferPlanner& planner, LoadQueue& loads, Loaders loaders)
      : CommitPhase(rank, planner, loads), loaders_(std::move(loaders)) {}

 protected:
  std::vector<Transfer> keep_adopted(const RequestState& request, const InsertOutcome& inserted,
                                     Tokens boundary) const override {
    std::vector<Transfer> kept = CommitPhase::keep_adopted(request, inserted, boundary);
    if (!kept.empty()) loaders_->insert(request.id);
    return kept;
  }

 private:
  Loaders loaders_;
};

class WaitsForOwnLoad : public CowPhase {
 public:
  WaitsForOwnLoad(const Rank& rank, LoadQueue& loads, Loaders loaders)
      : CowPhase(rank, loads), loaders_(std::move(loaders)) {}

 protected:
  void wait_for_source(const RequestState& request, LayerId layer,
                       std::span<const LoadId> loads) override {
    if (loaders_->contains(request.id)) CowPhase::wait_for_source(request, layer, loads);
  }

 private:
  Loaders loaders_;
};

class OwnLoadOnlyParts : public engine::Parts {
 public:
  std::unique_ptr<CommitPhase> commit_phase(const Rank& rank, const TransferPlanner& planner,
                                            LoadQueue& loads) const override {
    return std::make_unique<NotesLoaders>(rank, planner, loads, loaders_);
  }
  std::unique_ptr<CowPhase> cow_phase(const Rank& rank, LoadQueue& loads) const override {
    return std::make_unique<WaitsForOwnLoad>(rank, loads, loaders_);
  }

 private:
  Loaders loaders_ = std::make_shared<std::set<RequestId>>();  // of all ranks, which agree
};

class CopyTwice : public CowPhase {
 public:
  using CowPhase::CowPhase;

  void done(RequestState& request) override {
    if (request.pending_copy && again_.insert(request.id).second) {
      request.pending_copy->enqueued = false;
      return;
    }
    CowPhase::done(request);
  }

 private:
  std::set<RequestId> again_;
};

// The tickets leave the state out.
class SourceUnlocked : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  void adopt_state(RequestState& request, Node& canonical, Row source) override {
    request.pending_copy = PendingCopy{source, {}};
    const Row state = std::exchange(canonical.state, kTrapRow);
    request.lock = rank_.tree.lock(request.id, canonical, LockHolder::request,
                                   rank_.tree.window_of(canonical));
    canonical.state = state;
  }
};

class TemporalOnly : public CowPhase {
 public:
  using CowPhase::CowPhase;

 protected:
  void copy(const RequestState& request, std::span<const LayerPart> parts, bool last) override {
    std::vector<LayerPart> temporal;
    std::ranges::copy_if(parts, std::back_inserter(temporal),
                         [](const LayerPart& part) { return part.part == Part::temporal; });
    CowPhase::copy(request, temporal, last);
  }
};

constexpr std::array kCowDefects{
    Defect{"cow.no_wait", "C06", "H1", "", "the copy does not wait for any load",
           make<WithCowPhase<CopyWaitsForNothing>>},
    Defect{"cow.own_load_only", "C06", "H1", "",
           "the copy waits only if this request queued a load", make<OwnLoadOnlyParts>},
    Defect{"cow.twice", "C13", "B10", "", "the deferred copy runs again in the next pass",
           make<WithCowPhase<CopyTwice>>},
    Defect{"cow.source_unlocked", "C07", "B6", "D1",
           "the source may be evicted and reused before the copy",
           make<WithCommitPhase<SourceUnlocked>>},
    Defect{"cow.temporal_only", "C22", "D1", "", "only the temporal part is copied",
           make<WithCowPhase<TemporalOnly>>},
};

}  // namespace

std::span<const Defect> cow_defects() {
  return kCowDefects;
}

}  // namespace lockstep::sim::defects
