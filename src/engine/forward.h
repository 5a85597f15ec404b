// The plan of one forward: everything that its operations read, fixed when it is launched.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/ids.h"
#include "device/owned_bytes.h"

namespace lockstep::engine {

struct Forward;

// One request's part, the same on every rank.
struct PlannedSegment {
  RequestId request;
  std::uint64_t generation = 0;  // of the request when it was planned
  std::optional<std::string> extra_key;
  Tokens start;
  Tokens count;
  bool decode = false;
  bool last_chunk = false;  // the prompt's last chunk
  bool samples = false;     // its last output is the next token
  Tokens drafts;            // of its last tokens: guesses; after verify(), those guessed right
  bool dropped = false;     // its results are not taken
  Tokens end() const { return start + count; }
};

// Where a token that the host does not know yet comes from: the last output of that segment.
struct DeviceInput {
  std::shared_ptr<const Forward> forward;
  std::size_t segment = 0;
};

// One request's part on one rank.
struct RankSegment {
  // One per token; kTokenOnDevice until the embedding has put the one from `input` in its place.
  std::vector<TokenId> tokens;
  std::optional<DeviceInput> input;
  std::vector<Row> full;
  std::vector<Row> swa;
  Row q = kTrapRow;
  std::vector<SnapshotView> snapshots;  // checkpoints
  std::vector<SnapshotView> columns;    // the states inside a forward over drafts
  std::vector<SnapshotView> states;     // both, ascending
  // Taken by the executor when the forward begins: device memory, then what the host reads.
  OwnedBytes activations;
  // What a shard of the model gives the other ranks, of two neighbouring layers.
  std::array<OwnedBytes, 2> partials;
  OwnedBytes uploaded;        // tokens and tables, where the device cannot read the host's
  OwnedBytes device_outputs;  // where outputs cannot be written to the host's memory directly
  OwnedBytes outputs;
  std::span<std::byte> partial(LayerId layer) const { return partials[layer.index() % 2].get(); }
  // The outputs of all tokens but rejected guesses.
  std::span<std::byte> results() const {
    return outputs.get().first(outputs.size() - rejected.index());
  }
  Bytes rejected;
  // Forgets what was computed behind the first `count` tokens, which end at `end`: Q is from now on
  // the slot that holds the state there.
  void cut(Tokens end, Tokens count, Bytes output_bytes);
};

struct RankForward {
  std::vector<RankSegment> segments;  // parallel to Forward::segments
};

struct Forward {
  ForwardId id;
  std::vector<PlannedSegment> segments;
  std::vector<RankForward> ranks;
  std::size_t ranks_to_go = 0;        // that have not computed it yet
  std::optional<LoadId> newest_load;  // of those it waited for

  // The segments that are not dropped.
  std::vector<SegmentView> view(std::size_t rank) const;
};

}  // namespace lockstep::engine
