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

// A copy of Q of its own, which comes behind nothing.
class SnapshotTooEarly : public engine::Executor {
 public:
  using Executor::Executor;

  void run_layer(const std::shared_ptr<engine::Forward>& forward, std::size_t rank, LayerId layer,
                 Cache& cache) override {
    Executor::run_layer(forward, rank, layer, cache);
    snapshot(*forward, rank, layer);
  }
  void combine_heads(const std::shared_ptr<engine::Forward>& forward, std::size_t rank,
                     LayerId layer, std::span<const DeviceEvent> heads) override {
    Executor::combine_heads(forward, rank, layer, heads);
    snapshot(*forward, rank, layer);
  }

 private:
  void snapshot(const engine::Forward& forward, std::size_t rank, LayerId layer) {
    for (std::size_t i = 0; i < forward.segments.size(); ++i) {
      const engine::RankSegment& local = forward.ranks[rank].segments[i];
      for (const SnapshotView& snapshot : local.snapshots) {
        if (snapshot.depth == forward.segments[i].end()) copy(local.q, snapshot.slot, layer);
      }
    }
  }
  void copy(Row q, Row slot, LayerId layer) {
    RowPool& pool = pools_.pool(Component::mamba);
    Op op{.name = "snapshot.copy", .link = Link::device_memory};
    std::vector<LayerPart> moved;
    for (const LayerPart& part : pool.layout().parts) {
      if (part.layer != layer) continue;
      op.copies.add(pool.bytes(slot).subspan(part.offset.index(), part.size.index()),
                    pool.bytes(q).subspan(part.offset.index(), part.size.index()));
      moved.push_back(part);
    }
    if (moved.empty()) return;
    op.bytes = op.copies.size() * 2;
    op.accesses = [q, slot, moved](const AccessSink& sink) {
      for (const LayerPart& part : moved) {
        sink({Component::mamba, q, part.layer, part.part, AccessMode::read});
        sink({Component::mamba, slot, part.layer, part.part, AccessMode::write});
      }
    };
    device_.enqueue(StreamKind::offload, std::move(op));
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

constexpr std::array kStateDefects{
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
    Defect{"state.snapshot_too_early", "C05", "H1", "",
           "the snapshot is not ordered after the forward that writes it",
           make<WithExecutor<SnapshotTooEarly>>},
    Defect{"state.unit_mixup", "C21", "B4", "",
           "the snapshot's index counts pages where the forward counts state chunks",
           make<WithCheckpointTracker<UnitMixup>>},
    Defect{"state.inplace_on_tree_slot", "C13", "B6", "D1",
           "decode advances the tree's slot instead of Q",
           make<WithCommitPhase<InplaceOnTreeSlot>>},
};

}  // namespace

std::span<const Defect> state_defects() {
  return kStateDefects;
}

}  // namespace lockstep::sim::defects
