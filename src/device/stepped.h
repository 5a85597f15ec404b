// The stepped device: the simulator's clock and schedule instead of real concurrency, on host
// memory or on any accelerator, which then does one piece of one operation at a time.
//
//   compute | op  op  record(e) ...      each stream runs its head only; copies become visible in
//   load    | wait(e)  op  ...           pieces on the way, the body runs when the duration is
//   over. offload | op ...                     A wait holds its stream until the event is reached.
//   Across
//                                        streams nothing else orders anything.
//
// Streams run side by side, each operation from when it is its stream's head; or, if the schedule
// says so, one at a time: then the schedule chooses between the heads that could run, again after
// each piece. Records and waits at the head are done at once in either case.
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
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "device/cost_model.h"
#include "device/device.h"
#include "device/host_accelerator.h"
#include "device/ring_queue.h"

namespace lockstep {

// What the simulator decides about the operations of one device.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // The duration to use instead of `nominal`; never negative. Asked once per operation, when it
  // starts.
  virtual Nanoseconds jitter(const Op& op, Nanoseconds nominal);
  // In how many pieces an operation with copies becomes visible; at least 1.
  virtual std::size_t pieces() const;
  // Whether streams take turns instead of running side by side.
  virtual bool takes_turns() const;
  // Which of these streams runs its head, or the next piece of it. `runnable` has the head that was
  // enqueued first in front. REQUIRES: takes_turns(), at least two streams.
  virtual StreamKind choose(std::span<const StreamKind> runnable);
};

// Sees what the host hands to the streams, and what the streams then do, in the order in which it
// happens. Each entry of a stream (operation, record or wait) is announced by enqueued() first.
class DeviceListener {
 public:
  virtual ~DeviceListener() = default;
  virtual void enqueued(StreamKind) {}
  // An operation is its stream's head and starts; it may be asked for its accesses.
  virtual void op_begins(StreamKind, const Op&) {}
  // Around a piece of the copies, and around the body: nothing else moves bytes in between.
  virtual void bytes_begin(const Op&) {}
  virtual void bytes_end(const Op&) {}
  // A stream passes a record or a wait. The event of a record is about to be reached, or has been.
  virtual void recorded(StreamKind, DeviceEvent::State&) {}
  virtual void waited(StreamKind, const DeviceEvent::State&) {}
  // The host reaches an event that was not reached yet, or sees one that has been.
  virtual void signalled(DeviceEvent::State&) {}
  virtual void seen_by_host(const DeviceEvent::State&) {}
};

// Not owned; null: the nominal durations, copies in one piece, nobody listens.
struct SteppedHooks {
  Schedule* schedule = nullptr;
  DeviceListener* listener = nullptr;
};

class SteppedDevice : public Device {
 public:
  // `timers`, the hooks and the accelerator outlive the device. No accelerator: host memory.
  SteppedDevice(Timers& timers, CostModel cost, SteppedHooks hooks = {},
                Accelerator* accelerator = nullptr);
  ~SteppedDevice() override;
  SteppedDevice(const SteppedDevice&) = delete;
  SteppedDevice& operator=(const SteppedDevice&) = delete;

  Accelerator& accelerator() override { return *accelerator_; }
  std::span<std::byte> allocate(std::string_view name, Bytes size) override;
  void enqueue(StreamKind stream, Op op) override;
  void record(StreamKind stream, const DeviceEvent& event) override;
  void wait(StreamKind stream, const DeviceEvent& event) override;
  void signal(const DeviceEvent& event) override;
  void on_reached(const DeviceEvent& event, std::function<void()> action) override;
  bool reached(const DeviceEvent& event) override;

  // No operation runs or waits in any stream.
  bool idle() const;
  // Nothing has written next to a buffer; else an error that names the buffer and the side.
  Result<void> check_canaries();

 private:
  struct Record {
    DeviceEvent event;
  };
  struct Wait {
    DeviceEvent event;
  };
  using Entry = std::variant<std::monostate, Op, Record, Wait>;
  struct Numbered {
    Entry entry;
    std::uint64_t number = 0;  // in order of enqueueing, over all streams
  };

  // How far the operation at a stream's head has come.
  struct Progress {
    bool begun = false;
    Nanoseconds duration;
    std::size_t pieces = 1;
    std::size_t done = 0;
  };

  struct Stream {
    RingQueue<Numbered> entries;
    Progress head;
    bool running = false;  // the head is an operation, and the clock holds its next piece
    bool blocked = false;  // the head is a wait whose event is not reached
    bool ready = false;    // listed in ready_
  };

  struct HostAction {
    DeviceEvent::Waiter waiter;
    std::shared_ptr<DeviceEvent::State> event;
  };

  // 64-byte aligned bytes with a canary on either side.
  struct Buffer {
    std::string name;
    std::span<std::byte> before;
    std::span<std::byte> bytes;
    std::span<std::byte> after;
  };

  // What timers and waiters hold instead of `this`; empty once the device is gone.
  struct Lifeline {
    SteppedDevice* device = nullptr;
  };

  Stream& at(StreamKind kind) { return streams_[index(kind)]; }
  void push(StreamKind kind, Entry entry);
  void make_ready(StreamKind kind);
  void run_ready();
  void advance(StreamKind kind);
  // Each handles the head and says whether the stream may go on at once.
  bool step_op(StreamKind kind);
  bool step_wait(StreamKind kind);
  void pass_record(StreamKind kind);
  // If no stream has the turn: gives it to one; true if that stream is through with it already.
  bool give_turn();
  void begin_op(StreamKind kind);
  // Lets the time of the head's next piece pass; true if that took none and the operation is over.
  bool run_piece(StreamKind kind);
  void piece_is_due(StreamKind kind);
  void do_piece(StreamKind kind);
  void finish_op(StreamKind kind);
  void reach(const DeviceEvent& event);
  void run_host_actions();

  Timers& timers_;
  CostModel cost_;
  SteppedHooks hooks_;
  bool takes_turns_ = false;
  bool turn_given_ = false;  // some stream's piece is under way
  std::array<Stream, kStreamCount> streams_;
  std::uint64_t next_number_ = 0;
  HostAccelerator host_;
  Accelerator* accelerator_;
  std::vector<Buffer> buffers_;
  RingQueue<StreamKind> ready_;
  bool running_ready_ = false;
  bool wake_pending_ = false;  // the clock holds a call of run_ready()
  RingQueue<HostAction> reached_actions_;
  bool running_actions_ = false;
  std::shared_ptr<Lifeline> lifeline_;
};

}  // namespace lockstep
