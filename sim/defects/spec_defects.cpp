#include "sim/defects/spec_defects.h"

#include <array>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class ColumnZero : public DraftColumns {
 public:
  using DraftColumns::DraftColumns;

 private:
  std::size_t column_of(const RequestState&, Tokens) const override { return 0; }
};

class NoRollBack : public DraftColumns {
 public:
  using DraftColumns::DraftColumns;

  void keep(RequestState& request, Tokens) override { request.columns.release(); }
};

constexpr std::array kSpecDefects{
    Defect{"spec.column_zero", "C23", "D1", "",
           "after accepted drafts the next step reads the state after the first token",
           make<WithDraftColumns<ColumnZero>>},
    Defect{"spec.no_roll_back", "C23", "D1", "", "rejected drafts stay in the recurrent state",
           make<WithDraftColumns<NoRollBack>>},
};

}  // namespace

std::span<const Defect> spec_defects() {
  return kSpecDefects;
}

}  // namespace lockstep::sim::defects
