// Comparing two runs event by event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/events.h"

namespace lockstep::cli {

// One number for everything that an event says.
std::uint64_t event_digest(const Event& event);

class EventRecorder : public Observer {
 public:
  void on_event(const Event& event) override { digests_.push_back(event_digest(event)); }
  const std::vector<std::uint64_t>& digests() const { return digests_; }

 private:
  std::vector<std::uint64_t> digests_;
};

// Sees a second run and finds the first event that differs from the first run's.
class EventComparer : public Observer {
 public:
  // `first` outlives the comparer.
  explicit EventComparer(const std::vector<std::uint64_t>& first) : first_(first) {}

  void on_event(const Event& event) override;
  // Nothing if both runs had the same events; else a sentence that numbers the first difference
  // from 1.
  std::optional<std::string> difference() const;

 private:
  const std::vector<std::uint64_t>& first_;
  std::size_t count_ = 0;
  std::optional<std::size_t> differs_at_;
  std::string differing_line_;
};

}  // namespace lockstep::cli
