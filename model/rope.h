// Rotary positions: element i and element half + i of the first `rotary_dim` elements of a head
// turn as a pair by position * theta^(-2i / rotary_dim).
//
// Angles, cosines and sines are computed in fp64 with correctly rounded operations only and then
// rounded once to fp32, so every build computes the same: theta^(-2 / rotary_dim) by square roots,
// for which rotary_dim is a power of two; its powers by multiplication; the functions by a
// reduction to [-pi/4, pi/4] and their series.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::model {

struct SineCosine {
  double sine;
  double cosine;
};
// Within 2e-16 of the true values for 0 <= x <= 2^30.
SineCosine sine_cosine(double x);

class Rope {
 public:
  // REQUIRES: rotary_dim is a power of two from 2 on, theta > 0.
  Rope(std::int64_t rotary_dim, float theta);

  // Pairs of a head; and their cosines and sines at a position, so many each.
  std::int64_t pairs() const { return static_cast<std::int64_t>(steps_.size()); }
  void turns(std::int64_t position, float* cosines, float* sines) const;

  // Turns `heads` heads of `head_dim` elements of the token at `position`.
  void rotate(std::int64_t position, std::int64_t heads, std::int64_t head_dim, float* rows) const;

 private:
  std::vector<double> steps_;  // of each pair's angle
};

}  // namespace lockstep::model
