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

constexpr std::array kDefects{
    Defect{"cancel.lock_leak", "C14 C17", "C3", "C5", "cancel forgets the load lock",
           make<WithLinker<LockLeak>>},
};

}  // namespace

std::span<const Defect> cancel_defects() {
  return kDefects;
}

}  // namespace lockstep::sim::defects
