// A first-in, first-out queue in one growing ring, so that a queue that fills and drains all the
// time allocates nothing.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/check.h"

namespace lockstep {

template <class T>
class RingQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // REQUIRES: !empty(). Valid until the next push() or pop().
  T& front() { return CHECK("ring.front", !empty()), slots_[first_]; }

  void push(T value) {
    if (size_ == slots_.size()) grow();
    slots_[(first_ + size_) & (slots_.size() - 1)] = std::move(value);
    ++size_;
  }

  // REQUIRES: !empty().
  T pop() {
    T value = std::exchange(front(), T{});
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
    return value;
  }

 private:
  // Doubles the ring; its size stays a power of two, so that an index wraps by a mask.
  void grow() {
    std::vector<T> larger(slots_.empty() ? 16 : slots_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) {
      larger[i] = std::move(slots_[(first_ + i) & (slots_.size() - 1)]);
    }
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> slots_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace lockstep
