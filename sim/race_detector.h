// H1: every pair of conflicting accesses is ordered by stream order or events.
//
// A vector clock per stream says which operations of the other streams are certainly over when the
// stream's next one starts; the host's clock says the same for what the host does next. Clocks pass
// on along
//   - a stream: from each operation to the next;
//   - enqueueing: from the host to the operation;
//   - a record, and then whoever waits for the event, or the host when it sees the event;
//   - a signal: from the host to whoever waits.
// Each part of each layer of each row remembers its last write and the reads since, by stream. An
// access that conflicts with one of them that is not over for sure is a race, also if the bytes
// happened to be right this time.
//
// Verified: all accesses that operations declare, on one device. Not verified: that operations
// declare what they do (sim/access_check.h does that); host memory, which is read behind events by
// construction; the trap row, which belongs to nobody; an order between ranks, which share no row:
// an event of another rank's device passes no clock on, which can only report too much.
// A later access is compared with the last write and the last read of each stream only: the first
// race of a cell is always found, a second one may hide behind it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "device/ring_queue.h"
#include "device/stepped.h"
#include "pool/group.h"

namespace lockstep::sim {

struct RaceSide {
  std::string_view operation;
  StreamKind stream = StreamKind::compute;
  AccessMode mode = AccessMode::read;
};

struct Race {
  Component component = Component::full;
  Row row{};
  LayerId layer{};
  Part part = Part::kv;
  RaceSide earlier;  // began before `later`, in this schedule
  RaceSide later;
};

class RaceDetector : public DeviceListener {
 public:
  using Report = std::function<void(const Race&)>;
  // Reports each pair of operations once per component.
  RaceDetector(const std::vector<PoolSpec>& pools, Report report);

  void enqueued(StreamKind stream) override;
  void op_begins(StreamKind stream, const Op& op) override;
  void recorded(StreamKind stream, DeviceEvent::State& event) override;
  void waited(StreamKind stream, const DeviceEvent::State& event) override;
  void signalled(DeviceEvent::State& event) override;
  void seen_by_host(const DeviceEvent::State& event) override;

 private:
  using NameId = std::uint8_t;
  struct Touch {
    std::uint64_t operation = 0;  // ordinal in its stream, from 1; 0: none
    NameId name = 0;
  };
  // One part of one layer of one row.
  struct Cell {
    std::array<Touch, kStreamCount> reads;  // since the last write
    Touch write;
    StreamKind writer = StreamKind::compute;
  };
  struct Pool {
    std::vector<std::uint32_t> part_of;  // by layer and part: index of the part in the row
    std::size_t parts = 0;
    std::vector<Cell> cells;  // row after row
  };
  struct Stream {
    StreamClock clock{};                // itself included
    RingQueue<StreamClock> host_clock;  // the host's when it enqueued each entry
  };

  static void join(StreamClock& into, const StreamClock& from);
  Stream& at(StreamKind kind) { return streams_[index(kind)]; }
  // The stream reaches its next entry: what the host knew when it enqueued it is known now.
  Stream& next_entry(StreamKind kind);
  NameId name_id(std::string_view name);
  Cell& cell(const Access& access);
  void access(StreamKind stream, NameId name, const Access& access);
  void compare(const Access& access, RaceSide later, StreamKind stream, Touch touch,
               AccessMode mode);

  Report report_;
  std::array<Pool, kComponents.size()> pools_;
  std::array<Stream, kStreamCount> streams_;
  StreamClock host_{};
  std::vector<std::string_view> names_;
  struct Pair {
    Component component;
    std::string_view earlier;
    std::string_view later;
    auto operator<=>(const Pair&) const = default;
  };
  std::set<Pair> reported_;
};

}  // namespace lockstep::sim
