#include "sim/defects/swa_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class CursorNotRaised : public InsertPhase {
 public:
  using InsertPhase::InsertPhase;

  void prepare(RequestState& request, Tokens) override {
    rank_.emit(request.id, Prepared{request.swa_cursor});
  }
};

class EvictsBelowCheckpoint : public WindowRelease {
 public:
  using WindowRelease::WindowRelease;

 protected:
  std::optional<Tokens> oldest_donatable(const RequestState&) const override {
    return std::nullopt;
  }
};

// Frees the rows and leaves them in the request's list.
class RecachesFreed : public WindowRelease {
 public:
  using WindowRelease::WindowRelease;

 protected:
  void give_back(RequestState& request, Pages count) override {
    if (request.own_swa.rows().front() == freed_) return;
    freed_ = request.own_swa.rows().front();
    const auto gone = request.own_swa.rows().first(count.index());
    rank_.emit(request.id, RowsReleased{gone, request.swa_cursor});
    rank_.pools.pool(Component::swa).release(gone);
  }

 private:
  Row freed_ = kTrapRow;
};

constexpr std::array kSwaDefects{
    Defect{"swa.cursor_not_raised", "C12", "C1", "B3",
           "PREPARE leaves the cursor; INSERT takes unmapped rows below the window",
           make<WithInsertPhase<CursorNotRaised>>},
    Defect{"swa.evicts_below_checkpoint", "C12", "R2", "C6",
           "window release ignores the checkpoint that may still be donated",
           make<WithWindowRelease<EvictsBelowCheckpoint>>},
    Defect{"swa.recaches_freed", "C12", "C1", "", "released window rows are inserted again",
           make<WithWindowRelease<RecachesFreed>>},
};

}  // namespace

std::span<const Defect> swa_defects() {
  return kSwaDefects;
}

}  // namespace lockstep::sim::defects
