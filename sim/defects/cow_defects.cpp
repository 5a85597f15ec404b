#include "sim/defects/cow_defects.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class CopyTwice : public CowPhase {
 public:
  using CowPhase::CowPhase;

  void done(RequestState& request) override {
    if (request.pending_copy && again_.insert(request.id).second) {
      request.clear_pending = false;
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

constexpr std::array kDefects{
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
  return kDefects;
}

}  // namespace lockstep::sim::defects
