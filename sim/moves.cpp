#include "sim/moves.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "sim/world.h"

namespace lockstep::sim {

namespace {

// `loaded` comes only where a load is published after it has landed; `finished` holds nobody.
constexpr std::array kHoldPoints{Point::matched, Point::looked_up, Point::committed,
                                 Point::landed,  Point::copied,    Point::first_token};
constexpr std::array kMoveKinds{MoveKind::cancel, MoveKind::retract, MoveKind::hold,
                                MoveKind::release, MoveKind::fork};
constexpr std::uint64_t kForkDecodes = 6;

// Takes one choice after the other out of one number.
class Digits {
 public:
  explicit Digits(std::uint64_t number) : number_(number) {}
  // REQUIRES: choices > 0.
  std::uint64_t next(std::uint64_t choices) {
    const std::uint64_t digit = number_ % choices;
    number_ /= choices;
    return digit;
  }

 private:
  std::uint64_t number_;
};

class Moves {
 public:
  Moves(const Scenario& scenario, World& world) : scenario_(scenario), world_(world) {}

  std::optional<Step> choose(MoveKind kind, Digits digits) const {
    switch (kind) {
      case MoveKind::cancel:
        return of_request<CancelStep>(digits, [](const engine::Request&) { return true; });
      case MoveKind::retract:
        return of_request<RetractStep>(digits, [](const engine::Request& request) {
          return request.phase == engine::Phase::running;
        });
      case MoveKind::release:
        return of_request<ReleaseStep>(digits,
                                       [](const engine::Request& request) { return request.held; });
      case MoveKind::hold:
        return hold(digits);
      case MoveKind::fork:
        return fork(digits);
    }
    return std::nullopt;
  }

 private:
  const std::string& name(const engine::Request& request) const {
    return world_.names().at(request.id);
  }

  template <class T, class Condition>
  std::optional<Step> of_request(Digits digits, Condition condition) const {
    std::vector<const engine::Request*> candidates;
    for (const engine::Request* request : world_.engine().unfinished()) {
      if (condition(*request)) candidates.push_back(request);
    }
    if (candidates.empty()) return std::nullopt;
    return T{name(*candidates[digits.next(candidates.size())])};
  }

  std::optional<Step> hold(Digits digits) const {
    std::vector<HoldStep> candidates;
    for (const engine::Request* request : world_.engine().unfinished()) {
      if (request->hold_at) continue;
      for (Point point : kHoldPoints) {
        const auto reached = static_cast<engine::Point>(point);
        if (!request->reached.contains(reached)) candidates.push_back({name(*request), point});
      }
    }
    if (candidates.empty()) return std::nullopt;
    return candidates[digits.next(candidates.size())];
  }

  std::optional<Step> fork(Digits digits) const {
    if (world_.names().empty()) return std::nullopt;
    const RequestId source{static_cast<std::uint32_t>(digits.next(world_.names().size()))};
    const auto length = static_cast<std::int64_t>(world_.tokens_of(source).size());
    ForkStep step;
    step.request = world_.names().at(source);
    step.as = new_name();
    step.at = Tokens{place(length, digits)};
    const std::int64_t page = world_.cache().page.value();
    const std::array tails{std::int64_t{0}, std::int64_t{1}, page - 1, page, page + 1, 2 * page};
    const Tokens tail{tails[digits.next(tails.size())]};
    if (tail > Tokens{0}) step.then.push_back({tail, digits.next(1 << 16)});
    step.decode = Tokens{static_cast<std::int64_t>(1 + digits.next(kForkDecodes))};
    const RequestNamespace& names = world_.names_of(source);
    step.extra_key = names.extra_key;
    step.cache_salt = names.cache_salt;
    return step;
  }

  // 1 .. length: the end, a page edge, or one token beside one.
  std::int64_t place(std::int64_t length, Digits& digits) const {
    const std::int64_t page = world_.cache().page.value();
    const auto edges = static_cast<std::uint64_t>(length / page);
    if (edges == 0 || digits.next(3) == 0) return length;
    const auto edge = static_cast<std::int64_t>(1 + digits.next(edges)) * page;
    const auto beside = static_cast<std::int64_t>(digits.next(3)) - 1;
    return std::clamp(edge + beside, std::int64_t{1}, length);
  }

  // "f1", "f2", ..: one that nobody has in the scenario or in the run.
  std::string new_name() const {
    std::set<std::string> taken;
    for (const Step& step : scenario_.steps) {
      if (const auto* submit = std::get_if<SubmitStep>(&step)) taken.insert(submit->request);
      if (const auto* other = std::get_if<ForkStep>(&step)) taken.insert(other->as);
    }
    for (std::uint64_t number = 1;; ++number) {
      std::string name = "f" + std::to_string(number);
      if (!taken.contains(name) && !world_.find(name)) return name;
    }
  }

  const Scenario& scenario_;
  World& world_;
};

}  // namespace

std::optional<Step> choose_move(const PickStep& pick, const Scenario& scenario, World& world) {
  const Moves moves(scenario, world);
  if (pick.of) return moves.choose(*pick.of, Digits(pick.number));
  Digits digits(pick.number);
  const std::uint64_t first = digits.next(kMoveKinds.size());
  for (std::size_t i = 0; i < kMoveKinds.size(); ++i) {
    if (auto move = moves.choose(kMoveKinds[(first + i) % kMoveKinds.size()], digits)) return move;
  }
  return std::nullopt;
}

}  // namespace lockstep::sim
