// Kernels that move bytes within a device: gather and scatter of rows, fills. A launch takes a list
// of ranges by value; a unit is one chunk of one range, 16 bytes per lane and step where addresses
// and sizes allow it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "device/kernel.h"

namespace lockstep {

inline constexpr int kMostRanges = 64;
inline constexpr std::int64_t kChunkBytes = 4096;

struct alignas(16) Word16 {
  std::uint32_t words[4];
};

// Where range i begins, counted in units. A range of no bytes has no unit.
struct RangeUnits {
  std::int64_t first[kMostRanges + 1] = {};
  int count = 0;

  LOCKSTEP_HD std::int64_t total() const { return first[count]; }
  // Appends a range. REQUIRES: count < kMostRanges.
  LOCKSTEP_HD void add(std::int64_t bytes) {
    first[count + 1] = first[count] + (bytes + kChunkBytes - 1) / kChunkBytes;
    ++count;
  }
  LOCKSTEP_HD int range_of(std::int64_t unit) const {
    int low = 0;
    for (int step = kMostRanges / 2; step > 0; step /= 2) {
      if (low + step < count && first[low + step] <= unit) low += step;
    }
    return low;
  }
};

// The bytes of one unit in its range.
struct Chunk {
  std::int64_t begin;
  std::int64_t end;
};

LOCKSTEP_HD Chunk chunk_of(const RangeUnits& units, int range, std::int64_t unit,
                           std::int64_t bytes) {
  const std::int64_t begin = (unit - units.first[range]) * kChunkBytes;
  return {begin, begin + kChunkBytes < bytes ? begin + kChunkBytes : bytes};
}

struct CopyKernel {
  static constexpr std::string_view kName = "copy";
  struct Range {
    std::byte* target;
    const std::byte* source;
    std::int64_t bytes;
  };
  Range ranges[kMostRanges];
  RangeUnits units;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t unit) const {
    const int index = units.range_of(unit);
    const Range& range = ranges[index];
    const Chunk chunk = chunk_of(units, index, unit, range.bytes);
    const auto bits = reinterpret_cast<std::uintptr_t>(range.target) |
                      reinterpret_cast<std::uintptr_t>(range.source) |
                      static_cast<std::uintptr_t>(range.bytes);
    warp.each([&](int lane) {
      if (bits % sizeof(Word16) == 0) {
        copy_as<Word16>(range, chunk, lane);
      } else if (bits % sizeof(std::uint32_t) == 0) {
        copy_as<std::uint32_t>(range, chunk, lane);
      } else {
        copy_as<std::byte>(range, chunk, lane);
      }
    });
  }

 private:
  template <class Element>
  LOCKSTEP_HD static void copy_as(const Range& range, Chunk chunk, int lane) {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(Element));
    for (std::int64_t at = chunk.begin + lane * kSize; at < chunk.end; at += kWarpLanes * kSize) {
      *reinterpret_cast<Element*>(range.target + at) =
          *reinterpret_cast<const Element*>(range.source + at);
    }
  }
};

struct FillKernel {
  static constexpr std::string_view kName = "fill";
  struct Range {
    std::byte* target;
    std::int64_t bytes;
  };
  Range ranges[kMostRanges];
  RangeUnits units;
  std::uint32_t word;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t unit) const {
    const int index = units.range_of(unit);
    const Range& range = ranges[index];
    const Chunk chunk = chunk_of(units, index, unit, range.bytes);
    const auto bits =
        reinterpret_cast<std::uintptr_t>(range.target) | static_cast<std::uintptr_t>(range.bytes);
    warp.each([&](int lane) {
      if (bits % sizeof(Word16) == 0) {
        const Word16 value{{word, word, word, word}};
        constexpr auto kSize = static_cast<std::int64_t>(sizeof(Word16));
        for (std::int64_t at = chunk.begin + lane * kSize; at < chunk.end;
             at += kWarpLanes * kSize) {
          *reinterpret_cast<Word16*>(range.target + at) = value;
        }
        return;
      }
      for (std::int64_t at = chunk.begin + lane; at < chunk.end; at += kWarpLanes) {
        range.target[at] = static_cast<std::byte>(word >> at % 4 * 8 & 0xffu);
      }
    });
  }
};

}  // namespace lockstep
