// A device: buffers, streams, events and operations in stream order.
//
// Whoever enqueues says what to do; the back end decides when. The stepped host back end
// (device/stepped.h) waits for the simulator's clock and schedule; a CUDA back end hands the same
// calls to real streams. Within one stream, operations run in order of enqueueing; across streams
// only record() and wait() order anything.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/component.h"
#include "core/ids.h"

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

struct Op {
  std::string_view name;  // a literal: "forward.layer", "cow.copy", ...
  Link link = Link::device_memory;
  Bytes bytes{};                 // moved over `link`
  std::function<void()> body{};  // what it does
  // Enumerated only when a race detector listens; may be empty.
  std::function<void(const AccessSink&)> accesses{};
};

// A stream of one device. Only the device makes them.
enum class StreamKind { compute, load, offload };

// An event: recorded at most once, reached once everything before the record has run. Copies name
// the same event.
class DeviceEvent {
 public:
  struct State {
    bool reached = false;
    std::vector<std::function<void()>> waiters;  // called once, when it is reached
  };
  DeviceEvent() : state_(std::make_shared<State>()) {}
  bool reached() const { return state_->reached; }
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

class Device {
 public:
  virtual ~Device() = default;

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
};

}  // namespace lockstep
