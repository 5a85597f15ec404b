// What a model on a device needs of a segment in the device's memory: its tokens and page tables.
// One upload per forward, by embed(); the layers read it from there.
//
//   | tokens | full table | swa table | snapshots |      32-bit words; a snapshot is two
#pragma once

#include <cstdint>
#include <vector>

#include "device/accelerator.h"
#include "model/fingerprint_kernels.h"
#include "model/model.h"

namespace lockstep::model {

// The size of that memory.
Bytes device_segment_bytes(const Segment& segment);

class DeviceSegment {
 public:
  // REQUIRES: segment.uploaded has device_segment_bytes().
  explicit DeviceSegment(const Segment& segment);

  void upload(Accelerator& accelerator) const;

  std::int64_t token_count() const { return token_count_; }
  std::uint32_t* tokens() const { return words_; }
  const std::uint32_t* full() const { return words_ + token_count_; }
  const std::uint32_t* swa() const { return full() + full_count_; }
  const DeviceSnapshot* snapshots() const {
    return reinterpret_cast<const DeviceSnapshot*>(swa() + swa_count_);
  }

 private:
  const Segment& segment_;
  std::uint32_t* words_;
  std::int64_t token_count_;
  std::int64_t full_count_;
  std::int64_t swa_count_;
};

}  // namespace lockstep::model
