#include "sim/defects/admission_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class Undercounts : public Linker {
 public:
  using Linker::Linker;

 protected:
  Rows slots_wanted(const RequestState& request, Tokens boundary) const override {
    return Linker::slots_wanted(request, boundary) - Rows{1};
  }
};

constexpr std::array kAdmissionDefects{
    Defect{"admission.undercounts", "C16", "R1", "L2", "admits more requests than slots allow",
           make<WithLinker<Undercounts>>},
};

}  // namespace

std::span<const Defect> admission_defects() {
  return kAdmissionDefects;
}

}  // namespace lockstep::sim::defects
