// Strong types for everything that Lockstep counts or names.
//
// Two families: a Count is an amount with a unit (tokens, pages, rows, bytes, nanoseconds) and
// adds; an Id is a name and only compares. Neither converts to the other, nor to a bare integer
// without value().
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace lockstep {

template <class Tag, class Rep = std::int64_t>
class Count {
 public:
  constexpr Count() = default;
  constexpr explicit Count(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  constexpr auto operator<=>(const Count&) const = default;
  constexpr Count& operator+=(Count other) { return value_ += other.value_, *this; }
  constexpr Count& operator-=(Count other) { return value_ -= other.value_, *this; }
  constexpr Count& operator++() { return ++value_, *this; }
  friend constexpr Count operator+(Count a, Count b) { return Count(a.value_ + b.value_); }
  friend constexpr Count operator-(Count a, Count b) { return Count(a.value_ - b.value_); }
  friend constexpr Count operator*(Count a, Rep factor) { return Count(a.value_ * factor); }
  friend constexpr Rep operator/(Count a, Count b) { return a.value_ / b.value_; }
  friend constexpr Count operator%(Count a, Count b) { return Count(a.value_ % b.value_); }

 private:
  Rep value_ = 0;
};

template <class Tag, class Rep = std::uint32_t>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Rep value_ = 0;
};

using Tokens =
    Count<struct TokensTag>;  // a prefix length, a distance, or a position counted from token 0
using Pages = Count<struct PagesTag>;  // a number of pages, or a page index counted from token 0
using Rows = Count<struct RowsTag>;    // a number of rows of one pool (slots of the MAMBA pool too)
using Bytes = Count<struct BytesTag>;  // bytes
using Nanoseconds = Count<struct NanosecondsTag>;  // virtual time, or a span of it

using Row = Id<struct RowTag>;          // one page of a FULL or SWA pool, one slot of a MAMBA pool
using TokenId = Id<struct TokenIdTag>;  // a vocabulary entry
using RankId = Id<struct RankTag>;      // one tensor-parallel rank
using RequestId = Id<struct RequestTag>;           // one request, in order of submission
using LayerId = Id<struct LayerTag>;               // a layer of the model, counted over all layers
using NodeId = Id<struct NodeTag, std::uint64_t>;  // a tree node, in order of creation
using StepId = Id<struct StepTag, std::uint64_t>;  // an engine step, counted from 1
using LoadId = Id<struct LoadTag, std::uint64_t>;  // one request's load
using OffloadId = Id<struct OffloadTag, std::uint64_t>;  // one node's offload
using LockId = Id<struct LockTag, std::uint64_t>;        // one open lock ticket
using CommitId = Id<struct CommitTag, std::uint64_t>;    // one COMMIT of one rank
using ForwardId = Id<struct ForwardTag, std::uint64_t>;  // one forward of the engine

// Row 0 of every pool: never allocated, a trap for reads and writes through an absent row.
inline constexpr Row kTrapRow{0};

// In the plan of a forward: the token is the output of a forward that is still in flight.
inline constexpr TokenId kTokenOnDevice{0xffffffffu};

// "No request": events that belong to no request carry it.
inline constexpr RequestId kNoRequest{0xffffffffu};

}  // namespace lockstep

template <class Tag, class Rep>
struct std::hash<lockstep::Id<Tag, Rep>> {
  std::size_t operator()(const lockstep::Id<Tag, Rep>& id) const {
    return std::hash<Rep>{}(id.value());
  }
};
