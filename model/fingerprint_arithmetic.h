// The fingerprint model's arithmetic on plain words (equations: model/fingerprint.h), the same on
// the host and on a device.
#pragma once

#include <cstdint>

#include "core/host_device.h"
#include "core/random.h"

namespace lockstep::model::fingerprint {

using Word = std::uint64_t;

inline constexpr Word kEmpty = 0xe7037ed1a0b428dbull;

LOCKSTEP_HD constexpr Word absorb(Word hash, Word word) {
  const Word x = (hash ^ word) * 0x9fb21c651e98df25ull;
  return x ^ (x >> 32);
}

template <class... Words>
LOCKSTEP_HD constexpr Word absorb(Word hash, Word first, Words... rest) {
  return absorb(absorb(hash, first), rest...);
}

LOCKSTEP_HD constexpr Word mix(Word hash) {
  return SplitMix64(hash).next();
}

// What row(i) is multiplied with in a fold: odd, so that no bit of a row is lost, and different for
// every position.
LOCKSTEP_HD constexpr Word position_factor(std::int64_t position) {
  return static_cast<Word>(position) * 0x9e3779b97f4a7c15ull | 1;
}

// fold(t) for t = start, start + 1, ...: a running sum, because a sum modulo 2^64 can also be taken
// back exactly. `Rows` has at(position) and contiguous(position, end), see PagedLayer.
//
//   | page | page | page | own page of t |
//        ^      ^      ^   ^ ^ ^ ^          terms; those below the window have left
//        `---- pages_ ----'  `- own_ -'
template <class Rows>
class Fold {
 public:
  // A window of 0 means no limit. Reads the rows that token `start` sees below itself.
  LOCKSTEP_HD Fold(const Rows& rows, std::int64_t page, std::int64_t window, std::int64_t start)
      : rows_(rows), page_(page), window_(window), start_(start) {
    const std::int64_t first = window == 0 || start < window ? 0 : start - window + 1;
    own_begin_ = start / page * page;
    for (std::int64_t last = (first / page + 1) * page - 1; last < own_begin_; last += page) {
      pages_ += term(last);
    }
    add_own(first > own_begin_ ? first : own_begin_, start);
  }

  // Takes in row(position) and drops what its window no longer holds. REQUIRES: called for each
  // position in turn.
  LOCKSTEP_HD Word advance(std::int64_t position, Word row) {
    if (position == own_begin_ + page_) turn_page();
    if (window_ != 0 && position > start_ && position >= window_) drop(position - window_);
    newest_ = row * position_factor(position);
    own_ += newest_;
    return pages_ + own_;
  }

 private:
  LOCKSTEP_HD Word term(std::int64_t position) {
    return *rows_.at(position) * position_factor(position);
  }

  LOCKSTEP_HD void add_own(std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t count = rows_.contiguous(begin, end);
      const Word* run = rows_.at(begin);
      Word sum = 0;
      for (std::int64_t i = 0; i < count; ++i) sum += run[i] * position_factor(begin + i);
      own_ += sum;
      begin += count;
    }
  }

  LOCKSTEP_HD void turn_page() {
    pages_ += newest_;
    own_ = 0;
    own_begin_ += page_;
  }

  LOCKSTEP_HD void drop(std::int64_t position) {
    if (position >= own_begin_) {
      own_ -= term(position);
    } else if ((position + 1) % page_ == 0) {
      pages_ -= term(position);
    }
  }

  Rows rows_;  // its own place in the pages, behind the writer's
  std::int64_t page_;
  std::int64_t window_;
  std::int64_t start_;
  std::int64_t own_begin_ = 0;
  Word pages_ = 0;
  Word own_ = 0;
  Word newest_ = 0;
};

// Writes the rows of `count` tokens from `start` on and turns their inputs into the layer's
// outputs. `token(i)` is the id of the i-th.
template <class Rows, class Token>
LOCKSTEP_HD void attend(Word key, Rows rows, std::int64_t cache_page, std::int64_t window,
                        std::int64_t start, std::int64_t count, const Token& token, Word* hidden) {
  const bool sees_previous = window != 1;
  Fold<Rows> fold(rows, cache_page, window, start);
  Word previous = sees_previous && start > 0 ? *rows.at(start - 1) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t position = start + i;
    const Word below = absorb(key, static_cast<Word>(position), Word{token(i)}, hidden[i]);
    const Word row = mix(absorb(below, previous));
    *rows.at(position) = row;
    if (sees_previous) previous = row;
    hidden[i] = mix(absorb(~key, hidden[i], fold.advance(position, row)));
  }
}

// Feeds one input and returns the layer's output. `slot` is the layer's part of a slot: {fold,
// count}, then {`inputs` inputs, oldest first, tag}.
LOCKSTEP_HD Word recurrent_step(Word key, Word* slot, std::int64_t inputs, Word input) {
  Word* conv = slot + 2;
  Word update = key;
  for (std::int64_t i = 0; i <= inputs; ++i) update = absorb(update, conv[i]);
  update = mix(absorb(update, input));
  slot[0] = mix(absorb(slot[0], update, slot[1]));
  slot[1] += 1;
  for (std::int64_t i = 0; i + 1 < inputs; ++i) conv[i] = conv[i + 1];
  if (inputs > 0) conv[inputs - 1] = input;
  conv[inputs] = slot[1];
  return mix(absorb(~key, input, slot[0]));
}

}  // namespace lockstep::model::fingerprint
