// How the streams of one device are scheduled, from the run's seed.
//
//   fifo         streams run side by side
//   random       they take turns; each turn goes to any stream that could run
//   priority     they take turns by priority. Priorities are drawn at the start, and at depth - 1
//                points, drawn too, the stream in front falls behind all others: a bug that needs
//                `depth` ordered steps is found with a probability that does not depend on how many
//                streams wait (probabilistic concurrency testing, Burckhardt et al. 2010)
//   depth_first  they take turns in order of enqueueing, but for at most `depth` delays, at which a
//                turn passes to the next stream (delay bounding, Emmi et al. 2011). The seed is the
//                number of the set of delays: 0 is none, and every larger set is reached by
//                counting. A search over the first choices of a run would never leave its start.
//
// In every mode the seed lengthens the operations, so that no two keep a fixed phase, and copies
// become visible in pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.h"
#include "device/stepped.h"
#include "sim/scenario.h"

namespace lockstep::sim {

// Lengthens operations and lets streams run side by side.
class Jitter : public Schedule {
 public:
  // Lengthens each duration by up to `share` of itself. REQUIRES: share >= 0.
  Jitter(SplitMix64 random, double share) : random_(random), share_(share) {}
  Nanoseconds jitter(const Op& op, Nanoseconds nominal) override;
  std::size_t pieces() const override { return kPieces; }

 private:
  static constexpr std::size_t kPieces = 4;

  SplitMix64 random_;
  double share_;
};

// The turns at which a depth-first run delays a stream, in ascending order; one turn may come
// several times. Sets are numbered by their last turn, then by the turn before it, and so on, those
// with less delays first: with two delays at most, the sets 0 to 6 are {}, {0}, {0, 0}, {1}, {0,
// 1}, {1, 1}, {2}.
std::vector<std::uint64_t> delays_of(std::uint64_t number, std::int64_t most);

// The schedule of rank `rank`; each rank draws for itself.
std::unique_ptr<Schedule> make_schedule(const ScheduleSpec& spec, std::uint64_t seed, RankId rank);

}  // namespace lockstep::sim
