// Parts of a linker of which one class is replaced by a subclass: what most planted defects are.
#pragma once

#include <memory>

#include "engine/parts.h"
#include "link/linker.h"

namespace lockstep::sim::defects {

template <class Defective>
class WithLinker : public engine::Parts {
 public:
  std::unique_ptr<Linker> linker(const LinkerConfig& config, Device& device, PoolGroup& pools,
                                 Store& store, EventSink& sink,
                                 AllocationGate* gate) const override {
    return std::make_unique<Defective>(config, *this, device, pools, store, sink, gate);
  }
};

template <class Defective>
class WithExecutor : public engine::Parts {
 public:
  std::unique_ptr<engine::Executor> executor(const model::Model& model, Device& device,
                                             PoolGroup& pools, Tokens page) const override {
    return std::make_unique<Defective>(model, device, pools, page);
  }
};

template <class Defective>
class WithKeyScheme : public engine::Parts {
 public:
  std::unique_ptr<KeyScheme> key_scheme(Tokens page, RankId rank,
                                        std::uint32_t ranks) const override {
    return std::make_unique<Defective>(page, rank, ranks);
  }
};

template <class Defective>
class WithEvictionPolicy : public engine::Parts {
 public:
  std::unique_ptr<EvictionPolicy> eviction_policy(RankId /*rank*/) const override {
    return std::make_unique<Defective>();
  }
};

template <class Defective>
class WithNodeSplitter : public engine::Parts {
 public:
  std::unique_ptr<NodeSplitter> node_splitter() const override {
    return std::make_unique<Defective>();
  }
};

template <class Defective>
class WithTransferPlanner : public engine::Parts {
 public:
  std::unique_ptr<TransferPlanner> transfer_planner() const override {
    return std::make_unique<Defective>();
  }
};

template <class Defective>
class WithRowAllocator : public engine::Parts {
 public:
  std::unique_ptr<RowAllocator> row_allocator(const Rank& rank,
                                              AllocationGate* gate) const override {
    return std::make_unique<Defective>(rank, gate);
  }
};

template <class Defective>
class WithMatchPhase : public engine::Parts {
 public:
  std::unique_ptr<MatchPhase> match_phase(const Rank& rank) const override {
    return std::make_unique<Defective>(rank);
  }
};

template <class Defective>
class WithLookupPhase : public engine::Parts {
 public:
  std::unique_ptr<LookupPhase> lookup_phase(const Rank& rank) const override {
    return std::make_unique<Defective>(rank);
  }
};

template <class Defective>
class WithLoadPhase : public engine::Parts {
 public:
  std::unique_ptr<LoadPhase> load_phase(const Rank& rank, RowAllocator& allocator) const override {
    return std::make_unique<Defective>(rank, allocator);
  }
};

template <class Defective>
class WithInsertPhase : public engine::Parts {
 public:
  std::unique_ptr<InsertPhase> insert_phase(const Rank& rank) const override {
    return std::make_unique<Defective>(rank);
  }
};

template <class Defective>
class WithLoadQueue : public engine::Parts {
 public:
  std::unique_ptr<LoadQueue> load_queue(const Rank& rank) const override {
    return std::make_unique<Defective>(rank);
  }
};

template <class Defective>
class WithRollBackPhase : public engine::Parts {
 public:
  std::unique_ptr<RollBackPhase> roll_back_phase(const Rank& rank) const override {
    return std::make_unique<Defective>(rank);
  }
};

template <class Defective>
class WithCommitPhase : public engine::Parts {
 public:
  std::unique_ptr<CommitPhase> commit_phase(const Rank& rank, const TransferPlanner& planner,
                                            LoadQueue& loads) const override {
    return std::make_unique<Defective>(rank, planner, loads);
  }
};

template <class Defective>
class WithCowPhase : public engine::Parts {
 public:
  std::unique_ptr<CowPhase> cow_phase(const Rank& rank, LoadQueue& loads) const override {
    return std::make_unique<Defective>(rank, loads);
  }
};

template <class Defective>
class WithOffloadQueue : public engine::Parts {
 public:
  std::unique_ptr<OffloadQueue> offload_queue(const Rank& rank) const override {
    return std::make_unique<Defective>(rank);
  }
};

template <class Defective>
class WithOffloadPhase : public engine::Parts {
 public:
  std::unique_ptr<OffloadPhase> offload_phase(const Rank& rank, const TransferPlanner& planner,
                                              OffloadQueue& queue) const override {
    return std::make_unique<Defective>(rank, planner, queue);
  }
};

template <class Defective>
class WithCheckpointTracker : public engine::Parts {
 public:
  std::unique_ptr<CheckpointTracker> checkpoint_tracker(const Rank& rank,
                                                        RowAllocator& allocator) const override {
    return std::make_unique<Defective>(rank, allocator);
  }
};

template <class Defective>
class WithDraftColumns : public engine::Parts {
 public:
  std::unique_ptr<DraftColumns> draft_columns(const Rank& rank,
                                              RowAllocator& allocator) const override {
    return std::make_unique<Defective>(rank, allocator);
  }
};

template <class Defective>
class WithWindowRelease : public engine::Parts {
 public:
  std::unique_ptr<WindowRelease> window_release(const Rank& rank) const override {
    return std::make_unique<Defective>(rank);
  }
};

// What a registry entry points to.
template <class Parts>
std::unique_ptr<engine::Parts> make() {
  return std::make_unique<Parts>();
}

}  // namespace lockstep::sim::defects
