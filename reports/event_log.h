// The event log: one JSON object per line and event, in order. Every line has step, time_ns, rank,
// request (null: none) and event; the event's own fields follow in the order of core/events.h.
// Records are objects in a list; bytes are hexadecimal, and beyond 4,096 of them only their number
// and XXH3 digest.
#pragma once

#include <iosfwd>
#include <string>

#include "core/events.h"

namespace lockstep::reports {

// One line, without its end.
std::string event_line(const Event& event);

class EventLog : public Observer {
 public:
  // `out` outlives the log.
  explicit EventLog(std::ostream& out) : out_(out) {}
  void on_event(const Event& event) override;

 private:
  std::ostream& out_;
};

}  // namespace lockstep::reports
