// The plan of one forward: everything that its operations read, fixed when it is launched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/ids.h"
#include "device/device.h"

namespace lockstep::engine {

// One request's part, the same on every rank.
struct PlannedSegment {
  RequestId request;
  std::uint64_t generation = 0;  // of the request when it was planned
  std::optional<std::string> extra_key;
  Tokens start;
  std::vector<TokenId> tokens;
  bool decode = false;
  bool last_chunk = false;  // the prompt's last chunk
  bool samples = false;     // its last output is the next token
  Tokens end() const { return start + Tokens{static_cast<std::int64_t>(tokens.size())}; }
};

// One request's part on one rank.
struct RankSegment {
  std::vector<Row> full;
  std::vector<Row> swa;
  Row q = kTrapRow;
  std::vector<SnapshotView> snapshots;
  std::vector<std::byte> activations;
  std::vector<std::byte> outputs;
};

struct RankForward {
  std::vector<RankSegment> segments;  // parallel to Forward::segments
  DeviceEvent done;
};

struct Forward {
  ForwardId id;
  std::vector<PlannedSegment> segments;
  std::vector<RankForward> ranks;

  std::vector<SegmentView> view(std::size_t rank) const;
};

}  // namespace lockstep::engine
