#include "link/quarantine.h"

namespace lockstep {

void Quarantine::add(std::vector<TornRows> rows, LoadId last_load) {
  if (rows.empty()) return;
  Entry entry{std::move(rows), last_load, {}, {}};
  rank_.device.record(StreamKind::compute, entry.computed);
  rank_.device.record(StreamKind::load, entry.loaded);
  entries_.push_back(std::move(entry));
}

std::size_t Quarantine::releasable(std::optional<LoadId> oldest_load) const {
  std::size_t count = 0;
  for (const Entry& entry : entries_) {
    const bool filled = oldest_load && *oldest_load <= entry.last_load;
    const bool passed = rank_.device.reached(entry.computed) && rank_.device.reached(entry.loaded);
    if (filled || !passed) break;
    ++count;
  }
  return count;
}

void Quarantine::release(std::size_t entries) {
  for (; entries > 0; --entries) {
    for (const TornRows& torn : entries_.front().rows) {
      rank_.pools.pool(torn.component).release(torn.rows);
    }
    entries_.pop_front();
  }
}

void Quarantine::for_each(const std::function<void(const TornRows&)>& visit) const {
  for (const Entry& entry : entries_) {
    for (const TornRows& torn : entry.rows) visit(torn);
  }
}

}  // namespace lockstep
