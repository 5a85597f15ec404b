#include "sim/stream_schedule.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/check.h"

namespace lockstep::sim {

namespace {

class RandomTurns : public Jitter {
 public:
  RandomTurns(SplitMix64 jitter, double share, SplitMix64 order)
      : Jitter(jitter, share), order_(order) {}
  bool takes_turns() const override { return true; }
  StreamKind choose(std::span<const StreamKind> runnable) override {
    return runnable[order_.below(runnable.size())];
  }

 private:
  SplitMix64 order_;
};

class PriorityTurns : public Jitter {
 public:
  PriorityTurns(SplitMix64 jitter, double share, SplitMix64 order, std::int64_t depth)
      : Jitter(jitter, share) {
    for (std::size_t i = priority_.size(); i > 1; --i) {
      std::swap(priority_[i - 1], priority_[order.below(i)]);
    }
    // A run's length is not known before: short and long ones get their share of the points.
    for (std::int64_t i = 1; i < depth; ++i) {
      falls_.push_back(order.below(std::uint64_t{1} << (1 + order.below(kLengthBits))));
    }
    std::ranges::sort(falls_);
  }
  bool takes_turns() const override { return true; }
  StreamKind choose(std::span<const StreamKind> runnable) override {
    for (; next_fall_ < falls_.size() && falls_[next_fall_] <= turn_; ++next_fall_) {
      priority_[index(first(runnable))] = --lowest_;
    }
    ++turn_;
    return first(runnable);
  }

 private:
  static constexpr std::uint64_t kLengthBits = 12;

  StreamKind first(std::span<const StreamKind> runnable) const {
    return *std::ranges::max_element(
        runnable, {}, [this](StreamKind stream) { return priority_[index(stream)]; });
  }

  std::array<std::int64_t, kStreamCount> priority_{1, 2, 3};
  std::int64_t lowest_ = 1;
  std::vector<std::uint64_t> falls_;  // turns at which the stream in front falls behind
  std::size_t next_fall_ = 0;
  std::uint64_t turn_ = 0;
};

class DelayedTurns : public Jitter {
 public:
  DelayedTurns(SplitMix64 jitter, double share, std::vector<std::uint64_t> delays)
      : Jitter(jitter, share), delays_(std::move(delays)) {}
  bool takes_turns() const override { return true; }
  StreamKind choose(std::span<const StreamKind> runnable) override {
    const auto delays = static_cast<std::size_t>(std::ranges::count(delays_, turn_++));
    return runnable[std::min(delays, runnable.size() - 1)];
  }

 private:
  std::vector<std::uint64_t> delays_;
  std::uint64_t turn_ = 0;
};

}  // namespace

Nanoseconds Jitter::jitter(const Op&, Nanoseconds nominal) {
  constexpr std::uint64_t kSteps = 1024;
  const auto step = static_cast<double>(random_.below(kSteps));
  const double longer = static_cast<double>(nominal.value()) * share_ * step / double{kSteps};
  return nominal + Nanoseconds{static_cast<std::int64_t>(longer)};
}

// A set of `most` slots, each empty (0) or turn t (t + 1), is a multiset of `most` numbers; sorted,
// and the i-th one raised by i, it is a strictly rising sequence c with the number
// sum of binomial(c[i], i + 1) (the combinatorial number system).
std::vector<std::uint64_t> delays_of(std::uint64_t number, std::int64_t most) {
  // Beyond this, numbers repeat; it also keeps the products below small.
  constexpr std::uint64_t kNumbers = std::uint64_t{1} << 20;
  number %= kNumbers;
  std::vector<std::uint64_t> turns;
  for (auto slot = static_cast<std::uint64_t>(most); slot > 0; --slot) {
    std::uint64_t c = slot - 1;
    std::uint64_t below = 0;  // binomial(c, slot)
    std::uint64_t next = 1;   // binomial(c + 1, slot)
    while (next <= number) {
      ++c;
      below = next;
      next = next * (c + 1) / (c + 1 - slot);
    }
    number -= below;
    const std::uint64_t value = c - (slot - 1);
    if (value > 0) turns.push_back(value - 1);
  }
  std::ranges::reverse(turns);
  return turns;
}

std::unique_ptr<Schedule> make_schedule(const ScheduleSpec& spec, std::uint64_t seed, RankId rank) {
  const std::string stream = "schedule " + std::to_string(rank.value());
  const SplitMix64 jitter = substream(seed, stream);
  const SplitMix64 order = substream(seed, stream + " order");
  switch (spec.mode) {
    case ScheduleMode::fifo:
      return std::make_unique<Jitter>(jitter, spec.jitter);
    case ScheduleMode::random:
      return std::make_unique<RandomTurns>(jitter, spec.jitter, order);
    case ScheduleMode::priority:
      return std::make_unique<PriorityTurns>(jitter, spec.jitter, order, spec.depth);
    case ScheduleMode::depth_first:
      return std::make_unique<DelayedTurns>(jitter, spec.jitter,
                                            delays_of(seed + rank.value(), spec.depth));
  }
  return nullptr;
}

}  // namespace lockstep::sim
