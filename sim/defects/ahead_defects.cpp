#include "sim/defects/ahead_defects.h"

#include <array>
#include <map>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

// The length is read when the results are taken; the next forward has been planned by then.
class ResultOfLaterStep : public Linker {
 public:
  using Linker::Linker;

  std::vector<SnapshotView> track(RequestId id, Tokens start, Tokens end, bool decode) override {
    planned_[id] = end;
    return Linker::track(id, start, end, decode);
  }
  void accepted(RequestId id, Tokens /*end*/, bool decode) override {
    Linker::accepted(id, planned_[id], decode);
  }

 private:
  std::map<RequestId, Tokens> planned_;
};

constexpr std::array kAheadDefects{
    Defect{"ahead.result_of_later_step", "C05", "B4", "",
           "bookkeeping of a step reads a length that the next step has already advanced",
           make<WithLinker<ResultOfLaterStep>>},
};

}  // namespace

std::span<const Defect> ahead_defects() {
  return kAheadDefects;
}

}  // namespace lockstep::sim::defects
