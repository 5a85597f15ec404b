#include "model/device_segment.h"

#include "core/check.h"

namespace lockstep::model {

Bytes device_segment_bytes(const Segment& segment) {
  const std::size_t words = segment.tokens.size() + segment.full.size() + segment.swa.size() +
                            2 * segment.snapshots.size();
  return Bytes{static_cast<std::int64_t>(words * sizeof(std::uint32_t))};
}

DeviceSegment::DeviceSegment(const Segment& segment)
    : segment_(segment),
      words_(reinterpret_cast<std::uint32_t*>(segment.uploaded.data())),
      token_count_(std::ssize(segment.tokens)),
      full_count_(std::ssize(segment.full)),
      swa_count_(std::ssize(segment.swa)) {
  CHECK("device_segment.size",
        Bytes{std::ssize(segment.uploaded)} == device_segment_bytes(segment));
}

void DeviceSegment::upload(Accelerator& accelerator) const {
  std::vector<std::uint32_t> words;
  words.reserve(segment_.uploaded.size() / sizeof(std::uint32_t));
  for (const TokenId token : segment_.tokens) words.push_back(token.value());
  for (const Row row : segment_.full) words.push_back(row.value());
  for (const Row row : segment_.swa) words.push_back(row.value());
  for (const SnapshotView& snapshot : segment_.snapshots) {
    words.push_back(static_cast<std::uint32_t>((snapshot.depth - segment_.start).value()));
    words.push_back(snapshot.slot.value());
  }
  accelerator.upload(StreamKind::compute, segment_.uploaded, std::as_bytes(std::span(words)));
}

}  // namespace lockstep::model
