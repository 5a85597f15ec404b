#include "sim/defects/state_defects.h"

#include <algorithm>
#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class PastNodeEnd : public CheckpointTracker {
 public:
  using CheckpointTracker::CheckpointTracker;

 protected:
  Tokens snapshot_at(Tokens, Tokens, Tokens end) const override { return end; }
};

class LabelMinusOne : public CheckpointTracker {
 public:
  using CheckpointTracker::CheckpointTracker;

 protected:
  Tokens decoded_depth(Tokens end) const override { return end - Tokens{1}; }
};

class RelativeGrid : public CheckpointTracker {
 public:
  using CheckpointTracker::CheckpointTracker;

 protected:
  std::vector<Tokens> boundary_for(const RequestState&, Tokens start, Tokens end) const override {
    const Tokens depth = start + Geometry::floor_to(end - start, rank_.geometry.prefill_grid());
    return depth > start ? std::vector{depth} : std::vector<Tokens>{};
  }
};

class WrongTrackSlot : public CheckpointTracker {
 public:
  using CheckpointTracker::CheckpointTracker;

  std::optional<Checkpoint> donate_newest(RequestState& request, Tokens fed) override {
    std::vector<Checkpoint>& tracked = request.tracked;
    if (tracked.size() >= 2) std::swap(tracked.back().slot, tracked[tracked.size() - 2].slot);
    return CheckpointTracker::donate_newest(request, fed);
  }
};

class UnitMixup : public CheckpointTracker {
 public:
  using CheckpointTracker::CheckpointTracker;

 protected:
  Tokens snapshot_at(Tokens depth, Tokens start, Tokens) const override {
    const Pages index = rank_.geometry.pages(depth - start);
    return start + rank_.geometry.state_chunk * index.value();
  }
};

class InplaceOnTreeSlot : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  void take_private_slot(RequestState& request) override {
    if (request.q.empty()) request.q = OwnedRows({request.node->state}, nobody_);
  }

 private:
  class Nobody : public RowReleaser {
   public:
    void release(std::span<const Row>) override {}
  };
  Nobody nobody_;
};

constexpr std::array kDefects{
    Defect{"state.past_node_end", "C01", "B4", "",
           "a state of n' > node depth hangs on the node (its key floored to the page)",
           make<WithCheckpointTracker<PastNodeEnd>>},
    Defect{"state.label_minus_one", "C01", "B4", "",
           "a decode checkpoint is labelled one token early",
           make<WithCheckpointTracker<LabelMinusOne>>},
    Defect{"state.relative_grid", "C01 C28", "B4", "",
           "depth counted from the first token of the current chunk",
           make<WithCheckpointTracker<RelativeGrid>>},
    Defect{"state.wrong_track_slot", "C01", "B4", "", "the other ping-pong slot is donated",
           make<WithCheckpointTracker<WrongTrackSlot>>},
    Defect{"state.unit_mixup", "C21", "B4", "",
           "the snapshot's index counts pages where the forward counts state chunks",
           make<WithCheckpointTracker<UnitMixup>>},
    Defect{"state.inplace_on_tree_slot", "C13", "B6", "D1",
           "decode advances the tree's slot instead of Q",
           make<WithCommitPhase<InplaceOnTreeSlot>>},
};

}  // namespace

std::span<const Defect> state_defects() {
  return kDefects;
}

}  // namespace lockstep::sim::defects
