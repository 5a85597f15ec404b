// A device that runs at its own speed: operations go to the accelerator's streams as soon as the
// events in front of them are recorded, and only events order anything across streams. For real
// concurrency and for timing; the simulator's schedules and its race detector need SteppedDevice.
//
//   enqueue() ...        run()                                            accelerator
//   | op wait(e) op | -> launched until a wait whose event nobody has  -> | op | wait | op |
//                        recorded yet: that stream is held on the host
//
// Nothing runs inside enqueue(), record() or wait(): whoever owns the device calls run() in
// between, which launches what can be launched and does what the host has put off until an event.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

#include "device/device.h"
#include "device/ring_queue.h"

namespace lockstep {

class FreeRunningDevice : public Device {
 public:
  // `accelerator` outlives the device.
  explicit FreeRunningDevice(Accelerator& accelerator) : accelerator_(accelerator) {}
  // Waits for what is under way; what is held is dropped.
  ~FreeRunningDevice() override;
  FreeRunningDevice(const FreeRunningDevice&) = delete;
  FreeRunningDevice& operator=(const FreeRunningDevice&) = delete;

  Accelerator& accelerator() override { return accelerator_; }
  std::span<std::byte> allocate(std::string_view name, Bytes size) override {
    return accelerator_.allocate(name, size);
  }
  void enqueue(StreamKind stream, Op op) override;
  void record(StreamKind stream, const DeviceEvent& event) override;
  void wait(StreamKind stream, const DeviceEvent& event) override;
  void signal(const DeviceEvent& event) override;
  void on_reached(const DeviceEvent& event, std::function<void()> action) override;
  bool reached(const DeviceEvent& event) override { return event.reached(); }

  // Launches what can be, and reaches the events that streams have passed. False: nothing moved.
  // An operation that reports is waited for, so that the report sees what it left.
  bool run();
  // No stream holds anything and none is under way.
  bool idle() const;

 private:
  struct Record {
    DeviceEvent event;
  };
  struct Wait {
    DeviceEvent event;
  };
  using Entry = std::variant<std::monostate, Op, Record, Wait>;

  // Launched in one go: what operations own stays until the mark behind them.
  struct Batch {
    std::vector<Op> ops;
    std::vector<DeviceEvent> events;
    std::shared_ptr<StreamMark> mark;
  };

  bool launch_from(StreamKind kind);
  void launch(StreamKind kind, const Op& op);
  bool reach_passed();
  static void reach(const DeviceEvent& event);

  Accelerator& accelerator_;
  std::array<RingQueue<Entry>, kStreamCount> held_;
  std::array<std::deque<Batch>, kStreamCount> under_way_;
};

}  // namespace lockstep
