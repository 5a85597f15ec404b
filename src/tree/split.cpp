#include "tree/split.h"

#include <iterator>

#include "core/check.h"

namespace lockstep {

namespace {

template <class T>
void move_front(std::vector<T>& to, std::vector<T>& from, std::size_t count) {
  if (from.empty()) return;
  const auto middle = from.begin() + static_cast<std::ptrdiff_t>(count);
  to.assign(std::make_move_iterator(from.begin()), std::make_move_iterator(middle));
  from.erase(from.begin(), middle);
}

}  // namespace

void NodeSplitter::divide(Node& upper, Node& lower, Pages count) const {
  CHECK("split.inside", count > Pages{0} && count < lower.size());
  upper.begin = lower.begin;
  upper.namespace_hash = lower.namespace_hash;
  upper.used = lower.used;
  upper.loading = lower.loading;
  move_hashes(upper, lower, count.index());
  move_rows(upper, lower, count.index());
  move_locks(upper, lower, count.index());
  move_flags(upper, lower, count.index());
  place_state(upper, lower);
  lower.begin += count;
}

void NodeSplitter::move_hashes(Node& upper, Node& lower, std::size_t count) const {
  move_front(upper.hashes, lower.hashes, count);
}

void NodeSplitter::move_rows(Node& upper, Node& lower, std::size_t count) const {
  move_front(upper.full, lower.full, count);
  move_front(upper.swa, lower.swa, count);
}

void NodeSplitter::move_locks(Node& upper, Node& lower, std::size_t count) const {
  // Every ticket on or below the lower part has the upper one on its path.
  upper.full_locks = lower.full_locks;
  move_front(upper.swa_locks, lower.swa_locks, count);
}

void NodeSplitter::move_flags(Node& upper, Node& lower, std::size_t count) const {
  upper.full_stored = lower.full_stored;
  upper.full_pending = lower.full_pending;
  move_front(upper.swa_stored, lower.swa_stored, count);
  move_front(upper.swa_pending, lower.swa_pending, count);
}

void NodeSplitter::place_state(Node&, Node&) const {
  // The state and its flags belong to the end of the run, which the lower part keeps.
}

}  // namespace lockstep
