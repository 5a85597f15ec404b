#include "sim/defects/match_defects.h"

#include <array>
#include <map>

#include "sim/defects/parts_with.h"

namespace lockstep::sim::defects {

namespace {

class FullHit : public MatchPhase {
 public:
  using MatchPhase::MatchPhase;

 protected:
  Tokens limit(const RequestState&, Tokens length) const override { return length; }
};

class WindowOneShort : public MatchPhase {
 public:
  using MatchPhase::MatchPhase;

 protected:
  Pages window_needed() const override { return MatchPhase::window_needed() - Pages{1}; }
};

class NoLimitAfterResume : public MatchPhase {
 public:
  using MatchPhase::MatchPhase;

 protected:
  // A request that is longer than when it was first matched has generated tokens.
  Tokens limit(const RequestState& request, Tokens length) const override {
    const Tokens first = first_length_.try_emplace(request.id, length).first->second;
    return length > first ? length : MatchPhase::limit(request, length);
  }

 private:
  mutable std::map<RequestId, Tokens> first_length_;
};

constexpr std::array kMatchDefects{
    Defect{"match.full_hit", "C03", "B1", "", "L = len allowed", make<WithMatchPhase<FullHit>>},
    Defect{"match.window_one_short", "C12", "R1", "B3", "one page too few below the boundary",
           make<WithMatchPhase<WindowOneShort>>},
    Defect{"match.no_limit_after_resume", "C03 C27", "B1", "",
           "a resumed request may match a state at its full length",
           make<WithMatchPhase<NoLimitAfterResume>>},
};

}  // namespace

std::span<const Defect> match_defects() {
  return kMatchDefects;
}

}  // namespace lockstep::sim::defects
