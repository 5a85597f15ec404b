// A device: buffers, streams, events and operations in stream order.
//
// Whoever enqueues says what to do; the back end decides when. The stepped host back end
// (device/stepped.h) waits for the simulator's clock and schedule; a CUDA back end hands the same
// calls to real streams. Within one stream, operations run in order of enqueueing; across streams
// only events order anything: a stream waits for one that another stream or the host reaches, or
// the host sees one (on_reached(), reached()) before it enqueues. A body is not the host: what it
// leaves in host memory is read only behind an event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/component.h"
#include "core/ids.h"
#include "device/accelerator.h"
#include "device/copy_list.h"
#include "device/stream_kind.h"

namespace lockstep {

// The grain at which reads and writes are ordered: one part of one layer of one row.
enum class AccessMode { read, write };
struct Access {
  Component component = Component::full;
  Row row{};
  LayerId layer{};
  Part part = Part::kv;
  AccessMode mode = AccessMode::read;
};
using AccessSink = std::function<void(const Access&)>;

// Which link an operation's bytes travel on; a cost model turns it into a duration.
enum class Link { none, device_memory, host_link };

// Ranges of device memory that get one word repeated.
struct FillList {
  std::vector<std::span<std::byte>> targets;
  std::uint32_t word = 0;
};

struct Op {
  std::string_view name;  // a literal: "forward.layer", "cow.copy", ...
  Link link = Link::device_memory;
  Bytes bytes{};  // moved over `link`
  // What it does: on an accelerator that does not share the host's memory it only launches, into
  // the stream that the operation was enqueued on.
  std::function<void()> body{};
  // Every row that the copies and the body touch. Enumerated only when somebody listens; may be
  // empty.
  std::function<void(const AccessSink&)> accesses{};
  // Copied before the body runs, perhaps in pieces between the operation's start and its end.
  CopyList copies{};
  // Filled before the body runs, in device memory.
  FillList fills{};
  // Tells observers that it is over. Not part of what the device does, and the host learns nothing.
  std::function<void()> report{};
};

// Which operations are known to be over: of each stream, the first so many (a vector clock).
using StreamClock = std::array<std::uint64_t, kStreamCount>;

// An event: recorded at most once, reached once everything before the record has run. Copies name
// the same event.
class DeviceEvent {
 public:
  struct Waiter {
    std::function<void()> action;
    bool on_host = false;  // else the device's own: a stream goes on
  };
  struct State {
    bool reached = false;
    std::vector<Waiter> waiters;       // called once, when it is reached
    std::shared_ptr<StreamMark> mark;  // of a record that streams have passed but not reached
    StreamClock clock{};               // what is over when it is reached; a listener's, else unused
    const void* clock_of = nullptr;    // the listener whose streams the clock counts
  };
  DeviceEvent() : state_(std::make_shared<State>()) {}
  // For whoever runs the streams. The host asks Device::reached(), which knows who asks.
  bool reached() const { return state_->reached; }
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

class Device {
 public:
  virtual ~Device() = default;

  // What moves the bytes. Bodies and whoever needs memory for one forward or one transfer ask it.
  virtual Accelerator& accelerator() = 0;
  // Zero-filled memory that lives as long as the device. `name` appears in errors.
  virtual std::span<std::byte> allocate(std::string_view name, Bytes size) = 0;

  virtual void enqueue(StreamKind stream, Op op) = 0;
  virtual void record(StreamKind stream, const DeviceEvent& event) = 0;
  // The stream's later operations run after `event` is reached.
  virtual void wait(StreamKind stream, const DeviceEvent& event) = 0;
  // An event that the host reaches itself (a layer has arrived): signal() instead of record().
  virtual void signal(const DeviceEvent& event) = 0;
  // Runs `action` on the host when `event` is reached, at once if it has been.
  virtual void on_reached(const DeviceEvent& event, std::function<void()> action) = 0;
  // The host asks, and relies on the answer: what it does next is ordered behind the event.
  virtual bool reached(const DeviceEvent& event) = 0;
};

}  // namespace lockstep
