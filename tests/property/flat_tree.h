// The radix tree of semantics 5 as a flat map: one entry per cached prefix. Nothing is nested and
// nothing is updated in two places; whatever the tree keeps per node is looked for here.
//
//   [a] -> {swa, ..}   [a b] -> {swa, state, ends}   [a b c] -> {...}
//
// A node is the run of entries up to one that `ends`. Pages are one token long, every model has all
// three components, rows are counted and have no names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/component.h"

namespace lockstep::testing {

using Prefix = std::vector<int>;  // the pages of a sequence, from its first one

class FlatTree {
 public:
  struct Entry {
    bool swa = false;
    bool state = false;
    bool ends = false;
    std::uint64_t node = 0;               // order in which nodes came to be; at the node's end
    std::array<std::uint64_t, 3> used{};  // recency of the page's node
  };
  struct Ticket {
    Prefix at;
    std::size_t swa_from = 0;  // pages [swa_from, at.size()) are locked
    bool state = false;
  };
  using Capacity = std::array<std::int64_t, 3>;
  struct Adopted {
    std::vector<std::size_t> full;
    std::vector<std::size_t> swa;  // pages, ascending
    bool state = false;
  };

  FlatTree(std::size_t window_pages, Capacity capacity)
      : window_pages_(window_pages), capacity_(capacity) {}

  // INSERT of `path` with FULL rows of all pages, SWA rows from `swa_from` on, and a state.
  Adopted insert(const Prefix& path, std::size_t swa_from);
  // Pages of the longest cached prefix of `path`.
  std::size_t matched(const Prefix& path) const;
  // Makes a node end at `at`. REQUIRES: `at` is cached.
  void split(const Prefix& at);
  // The deepest legal hit of at most `limit` pages, by semantics 9, R1; 0 if there is none.
  std::size_t hit(const Prefix& path, std::size_t limit) const;
  void touch(const Prefix& at);
  // Ticket numbers count from 0 and are not used again. REQUIRES: a node ends at `at`.
  void lock(const Prefix& at, std::size_t swa_from);
  void unlock(std::uint64_t ticket);
  void evict(Component component, std::int64_t shortfall);
  void clear() { entries_.clear(); }

  std::size_t window_begin(std::size_t end) const {
    return end > window_pages_ ? end - window_pages_ : 0;
  }
  const std::map<Prefix, Entry>& entries() const { return entries_; }
  const std::map<std::uint64_t, Ticket>& tickets() const { return tickets_; }
  std::uint64_t next_ticket() const { return next_ticket_; }
  std::int64_t free(Component component) const;
  std::int64_t evictable(Component component) const;
  // Tickets that cover the component's row of the last page of `at`.
  std::uint32_t locks(Component component, const Prefix& at) const;
  Prefix node_end(Prefix at) const;

 private:
  std::vector<Prefix> node_pages(const Prefix& end) const;
  bool has_children(const Prefix& at) const;
  bool may_evict(Component component, const Prefix& end) const;
  bool has(Component component, const Prefix& at) const;
  void stamp(Component component, const Prefix& at);
  void evict_node(Component component, const Prefix& end);
  void drop_window(const Prefix& end);
  void remove(const Prefix& end);
  void prune(Prefix at);

  std::size_t window_pages_;
  Capacity capacity_;
  std::map<Prefix, Entry> entries_;
  std::map<std::uint64_t, Ticket> tickets_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t next_node_ = 1;
  std::uint64_t clock_ = 0;
};

}  // namespace lockstep::testing
