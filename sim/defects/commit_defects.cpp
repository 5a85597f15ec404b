#include "sim/defects/commit_defects.h"

#include <algorithm>
#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class SkipState : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  void adopt_state(RequestState&, Node&, Row) override {}
};

class SourceIsTransfer : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  void release_surplus(RequestState& request, const InsertOutcome& inserted) override {
    surplus_ = inserted.mamba_exist ? request.load.state.row() : kTrapRow;
    CommitPhase::release_surplus(request, inserted);
  }
  Row choose_source(const RequestState& request, const Node& canonical) const override {
    return surplus_ != kTrapRow && request.boundary > request.device_hit
               ? surplus_
               : CommitPhase::choose_source(request, canonical);
  }

 private:
  Row surplus_ = kTrapRow;
};

class DoubleFree : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  void release_surplus(RequestState& request, const InsertOutcome& inserted) override {
    if (!inserted.mamba_exist) return;
    const Row surplus = request.load.state.row();
    CommitPhase::release_surplus(request, inserted);
    rank_.pools.pool(Component::mamba).release({&surplus, 1});
  }
};

class CowBeforeFree : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  void release_surplus(RequestState& request, const InsertOutcome& inserted) override {
    take_private_slot(request);
    CommitPhase::release_surplus(request, inserted);
  }
};

class PagesRuleForState : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  std::vector<Transfer> keep_adopted(const RequestState& request, const InsertOutcome& inserted,
                                     Tokens boundary) const override {
    std::vector<Transfer> transfers = CommitPhase::keep_adopted(request, inserted, boundary);
    // The state's page is kept like any other page: only if its FULL row was adopted.
    std::erase_if(transfers, [&](const Transfer& transfer) {
      return transfer.component == Component::mamba &&
             std::ranges::none_of(inserted.full_adopted, [&](const PageRange& range) {
               return range.begin < transfer.pages.end && transfer.pages.end <= range.end;
             });
    });
    return transfers;
  }
};

class LoadUnadopted : public CommitPhase {
 public:
  using CommitPhase::CommitPhase;

 protected:
  std::vector<Transfer> keep_adopted(const RequestState& request, const InsertOutcome& inserted,
                                     Tokens boundary) const override {
    std::vector<Transfer> transfers = CommitPhase::keep_adopted(request, inserted, boundary);
    auto next = inserted.full_duplicate_rows.begin();
    for (const PageRange& range : inserted.full_duplicate) {
      const auto end = next + static_cast<std::ptrdiff_t>(range.size().index());
      const auto named =
          std::span(request.hashes).subspan(range.begin.index(), range.size().index());
      transfers.push_back(planner_.pages(Component::full, named, range, {next, end}));
      next = end;
    }
    return transfers;
  }
};

constexpr std::array kCommitDefects{
    Defect{"commit.skip_state", "C13", "B6", "D1 D2 D3",
           "COMMIT does not make the checkpoint the copy-on-write source; the request goes on from "
           "what it had",
           make<WithCommitPhase<SkipState>>},
    Defect{"commit.source_is_transfer", "C13", "B6", "",
           "the copy-on-write source is the transfer slot T, also when the canonical node kept "
           "another",
           make<WithCommitPhase<SourceIsTransfer>>},
    Defect{"commit.double_free", "C15", "B8", "C2", "wrapper and component both free the surplus T",
           make<WithCommitPhase<DoubleFree>>},
    Defect{"commit.cow_before_free", "C16", "B11", "", "takes Q before freeing T",
           make<WithCommitPhase<CowBeforeFree>>},
    Defect{"commit.pages_rule_for_state", "C28", "D1", "",
           "page slicing applied to the state transfer", make<WithCommitPhase<PagesRuleForState>>},
    Defect{"commit.load_unadopted", "C07", "C1", "H1",
           "loads into rows that the tree freed as duplicates",
           make<WithCommitPhase<LoadUnadopted>>},
};

}  // namespace

std::span<const Defect> commit_defects() {
  return kCommitDefects;
}

}  // namespace lockstep::sim::defects
