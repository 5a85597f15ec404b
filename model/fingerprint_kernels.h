// The fingerprint model as kernels of a device. Its arithmetic is one chain over the tokens, so a
// layer of a segment is one lane's work: these kernels are for equal bits, not for speed.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/kernel.h"
#include "model/fingerprint_arithmetic.h"

namespace lockstep::model {

// The words of one layer of a paged component, as PagedLayer has them on the host.
struct DeviceWords {
  fingerprint::Word* base;     // row 0 of the pool at this layer
  const std::uint32_t* table;  // page table from page 0 on
  std::int64_t row_words;      // of the pool
  std::int64_t page;           // tokens

  LOCKSTEP_HD fingerprint::Word* at(std::int64_t position) const {
    return base + table[position / page] * row_words + position % page;
  }
  LOCKSTEP_HD std::int64_t contiguous(std::int64_t position, std::int64_t end) const {
    const std::int64_t page_end = (position / page + 1) * page;
    return (page_end < end ? page_end : end) - position;
  }
};

// Unit: 32 tokens.
struct FingerprintEmbedKernel {
  static constexpr std::string_view kName = "fingerprint.embed";
  fingerprint::Word key;
  const std::uint32_t* tokens;
  std::int64_t count;
  fingerprint::Word* hidden;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t unit) const {
    warp.each([&](int lane) {
      const std::int64_t i = unit * kWarpLanes + lane;
      if (i < count) {
        hidden[i] = fingerprint::mix(fingerprint::absorb(key, fingerprint::Word{tokens[i]}));
      }
    });
  }
};

// One unit.
struct FingerprintAttendKernel {
  static constexpr std::string_view kName = "fingerprint.attend";
  fingerprint::Word key;
  DeviceWords rows;
  std::int64_t cache_page;
  std::int64_t window;  // 0: every token below
  std::int64_t start;
  std::int64_t count;
  const std::uint32_t* tokens;
  fingerprint::Word* hidden;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t) const {
    warp.each([&](int lane) {
      if (lane != 0) return;
      const std::uint32_t* ids = tokens;
      fingerprint::attend(
          key, rows, cache_page, window, start, count, [ids](std::int64_t i) { return ids[i]; },
          hidden);
    });
  }
};

// Where a snapshot goes: after so many tokens of the segment, into this row.
struct DeviceSnapshot {
  std::uint32_t tokens;
  std::uint32_t row;
};

// One unit.
struct FingerprintRecurKernel {
  static constexpr std::string_view kName = "fingerprint.recur";
  fingerprint::Word key;
  fingerprint::Word* slots;  // slot 0 at this layer
  std::int64_t row_words;
  std::int64_t layer_words;
  std::int64_t inputs;
  std::uint32_t q;
  std::int64_t count;
  const DeviceSnapshot* snapshots;  // by ascending tokens
  std::int64_t snapshot_count;
  fingerprint::Word* hidden;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t) const {
    warp.each([&](int lane) {
      if (lane != 0) return;
      fingerprint::Word* slot = slots + q * row_words;
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        hidden[i] = fingerprint::recurrent_step(key, slot, inputs, hidden[i]);
        for (; next < snapshot_count && snapshots[next].tokens == i + 1; ++next) {
          fingerprint::Word* target = slots + snapshots[next].row * row_words;
          for (std::int64_t word = 0; word < layer_words; ++word) target[word] = slot[word];
        }
      }
    });
  }
};

// One unit.
struct FingerprintNextKernel {
  static constexpr std::string_view kName = "fingerprint.next";
  const fingerprint::Word* output;
  std::int64_t vocab;
  std::uint32_t* token;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t) const {
    warp.each([&](int lane) {
      if (lane != 0) return;
      const fingerprint::Word word = fingerprint::mix(*output);
      *token = static_cast<std::uint32_t>(word % static_cast<fingerprint::Word>(vocab));
    });
  }
};

// A slot of zero tokens. Unit: 32 words.
struct FingerprintClearKernel {
  static constexpr std::string_view kName = "fingerprint.clear";
  fingerprint::Word* slot;
  std::int64_t words;
  std::int64_t layer_words;

  LOCKSTEP_HD void run(const Warp& warp, std::int64_t unit) const {
    warp.each([&](int lane) {
      const std::int64_t i = unit * kWarpLanes + lane;
      if (i >= words) return;
      const std::int64_t in_layer = i % layer_words;
      const bool counts = in_layer == 1 || in_layer + 1 == layer_words;
      slot[i] = counts ? 0 : fingerprint::kEmpty;
    });
  }
};

}  // namespace lockstep::model
