#include "sim/defects/retract_defects.h"

#include <array>
#include <map>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

// The slot outlives the retraction and is taken for prepared.
class KeepsState : public Linker {
 public:
  using Linker::Linker;

  void retract(RequestId id, std::span<const TokenId> tokens, Tokens fed) override {
    Linker::retract(id, tokens, fed);
    kept_[id] = std::move(state(id).q);
  }
  void open(RequestId id, const RequestNamespace& names) override {
    Linker::open(id, names);
    if (kept_.contains(id)) state(id).q = std::move(kept_[id]);
  }
  void commit_empty(RequestId id) override {
    Linker::commit_empty(id);
    if (kept_.erase(id) > 0) state(id).clear_pending = false;
  }

 private:
  std::map<RequestId, OwnedRows> kept_;
};

class StaleCursor : public Linker {
 public:
  using Linker::Linker;

  void close(RequestId id) override {
    cursor_[id] = state(id).swa_cursor;
    Linker::close(id);
  }
  void open(RequestId id, const RequestNamespace& names) override {
    Linker::open(id, names);
    state(id).swa_cursor = cursor_[id];
  }

 private:
  std::map<RequestId, Tokens> cursor_;
};

constexpr std::array kRetractDefects{
    Defect{"retract.keeps_state", "C27", "D1", "", "a resumed request reuses its old slot",
           make<WithLinker<KeepsState>>},
    Defect{"retract.stale_cursor", "C27", "B3", "D1", "cursors are not reset with the row list",
           make<WithLinker<StaleCursor>>},
};

}  // namespace

std::span<const Defect> retract_defects() {
  return kRetractDefects;
}

}  // namespace lockstep::sim::defects
