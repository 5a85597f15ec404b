#include "sim/defects/cancel_defects.h"

#include <array>
#include <vector>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

// A request that goes while its path is being loaded leaves its ticket behind.
class LockLeak : public Linker {
 public:
  using Linker::Linker;

 protected:
  void give_back(RequestState& request) override {
    if (path_is_loading(request.id)) leaked_.push_back(std::move(request.lock));
    Linker::give_back(request);
  }

 private:
  std::vector<LockTicket> leaked_;
};

class FreesWhileLoading : public Linker {
 public:
  using Linker::Linker;

 protected:
  void give_back(RequestState& request) override {
    request.filling.reset();
    Linker::give_back(request);
  }
};

constexpr std::array kCancelDefects{
    Defect{"cancel.lock_leak", "C14 C17", "C3", "C5", "cancel forgets the load lock",
           make<WithLinker<LockLeak>>},
    Defect{"cancel.frees_while_loading", "C17 C07", "H1", "C1", "rows freed under a running load",
           make<WithLinker<FreesWhileLoading>>},
};

}  // namespace

std::span<const Defect> cancel_defects() {
  return kCancelDefects;
}

}  // namespace lockstep::sim::defects
