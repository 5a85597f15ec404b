// Rows that left the tree while a stream may still write or read them (semantics 7): they go back
// to their pools once the streams have passed and every load that was under way then is over. In
// order of arrival, so that ranks can agree on how many to release.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "link/rank.h"
#include "tree/radix_tree.h"

namespace lockstep {

class Quarantine {
 public:
  explicit Quarantine(const Rank& rank) : rank_(rank) {}

  // `last_load`: the youngest load under way now.
  void add(std::vector<TornRows> rows, LoadId last_load);
  // Entries, oldest first, that could be released now; `oldest_load` is the oldest load still under
  // way, if any.
  std::size_t releasable(std::optional<LoadId> oldest_load) const;
  void release(std::size_t entries);

  bool empty() const { return entries_.empty(); }
  void for_each(const std::function<void(const TornRows&)>& visit) const;

 private:
  struct Entry {
    std::vector<TornRows> rows;
    LoadId last_load;
    DeviceEvent computed;  // behind what the compute stream had been given
    DeviceEvent loaded;    // and the load stream
  };

  const Rank& rank_;
  std::deque<Entry> entries_;
};

}  // namespace lockstep
