// The stepped host back end: host memory as the device, and the simulator's clock instead of real
// concurrency.
//
//   compute | op  op  record(e) ...      each stream runs its head only; an op starts when it is
//   the head and its load    | wait(e)  op  ...           body runs when its duration is over. A
//   wait holds its stream until the event offload | op ...                     is reached. Across
//   streams nothing else orders anything.
//
// Nothing runs inside enqueue(), record(), wait() or signal() except the host actions of an event
// that signal() reaches: streams move on from the clock only, so that a caller is never re-entered
// by a body. Zero-duration operations run in a loop at the same time, not in nested calls. An event
// that is reached again stays as it is.
//
// A device may go while operations are queued: they are dropped, and what the clock still holds for
// it does nothing.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "device/cost_model.h"
#include "device/device.h"
#include "device/ring_queue.h"

namespace lockstep {

// What the simulator may change about an operation's duration.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // The duration to use instead of `nominal`; never negative. Asked once per operation, when it
  // starts.
  virtual Nanoseconds jitter(const Op& op, Nanoseconds nominal);
};

// Sees every operation just before its body runs; it may enumerate op.accesses.
class AccessListener {
 public:
  virtual ~AccessListener() = default;
  virtual void on_op(StreamKind stream, const Op& op) = 0;
};

// Not owned; null: the nominal durations, nobody listens.
struct SteppedHooks {
  Schedule* schedule = nullptr;
  AccessListener* listener = nullptr;
};

class SteppedDevice : public Device {
 public:
  // `timers` and the hooks outlive the device.
  SteppedDevice(Timers& timers, CostModel cost, SteppedHooks hooks = {});
  ~SteppedDevice() override;
  SteppedDevice(const SteppedDevice&) = delete;
  SteppedDevice& operator=(const SteppedDevice&) = delete;

  std::span<std::byte> allocate(std::string_view name, Bytes size) override;
  void enqueue(StreamKind stream, Op op) override;
  void record(StreamKind stream, const DeviceEvent& event) override;
  void wait(StreamKind stream, const DeviceEvent& event) override;
  void signal(const DeviceEvent& event) override;
  void on_reached(const DeviceEvent& event, std::function<void()> action) override;

  // No operation runs or waits in any stream.
  bool idle() const;
  // Nothing has written next to a buffer; else an error that names the buffer and the side.
  Result<void> check_canaries() const;

 private:
  struct Record {
    DeviceEvent event;
  };
  struct Wait {
    DeviceEvent event;
  };
  using Entry = std::variant<std::monostate, Op, Record, Wait>;

  struct Stream {
    RingQueue<Entry> entries;
    bool running = false;  // the head is an operation whose duration is not over
    bool blocked = false;  // the head is a wait whose event is not reached
    bool ready = false;    // listed in ready_
  };

  // 64-byte aligned bytes with a canary on either side.
  struct Buffer {
    std::string name;
    std::vector<std::byte> memory;
    std::span<std::byte> before;
    std::span<std::byte> bytes;
    std::span<std::byte> after;
  };

  // What timers and waiters hold instead of `this`; empty once the device is gone.
  struct Lifeline {
    SteppedDevice* device = nullptr;
  };

  Stream& at(StreamKind kind) { return streams_[static_cast<std::size_t>(kind)]; }
  void push(StreamKind kind, Entry entry);
  void make_ready(StreamKind kind);
  void run_ready();
  void advance(StreamKind kind);
  // Each handles the head and says whether the stream may go on at once.
  bool step_op(StreamKind kind);
  bool step_wait(StreamKind kind);
  void finish_op(StreamKind kind);
  void complete(StreamKind kind);
  void reach(const DeviceEvent& event);

  Timers& timers_;
  CostModel cost_;
  SteppedHooks hooks_;
  std::array<Stream, 3> streams_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  RingQueue<StreamKind> ready_;
  bool running_ready_ = false;
  bool wake_pending_ = false;  // the clock holds a call of run_ready()
  RingQueue<std::function<void()>> reached_actions_;
  bool running_actions_ = false;
  std::shared_ptr<Lifeline> lifeline_;
};

}  // namespace lockstep
