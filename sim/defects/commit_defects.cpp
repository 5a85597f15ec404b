#include "sim/defects/commit_defects.h"

namespace lockstep::sim::defects {

namespace {

class SkipState : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  void adopt_state(RequestState&, Node&, Row) override {}
};

class SkipStateParts : public LinkParts {
 public:
  std::unique_ptr<CommitPhase> commit_phase(const Rank& rank, const TransferPlanner& planner,
                                            LoadQueue& loads) const override {
    return std::make_unique<SkipState>(rank, planner, loads);
  }
};

}  // namespace

std::unique_ptr<LinkParts> commit_skip_state() {
  return std::make_unique<SkipStateParts>();
}

}  // namespace lockstep::sim::defects
