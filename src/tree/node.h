// A node of the radix tree: a run of pages below a path of other runs.
//
//   root(namespace) --[h0 h1]-- A --[h2 h3 h4]-- B          full: one row per page, always
//                                \--[h5]-- C                 swa:  one row per page, the trap row
//                                where absent
//                                                            state: at the node's end only, the
//                                                            trap row where absent
//
// Invariants (judged by the oracle as C6): every node but a root has at least one page; a child is
// found by its first page hash; a node with a state has the SWA rows of its whole window; an
// unlocked node without children has a state.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/hash.h"
#include "core/ids.h"

namespace lockstep {

struct Node {
  NodeId id;
  Node* parent = nullptr;  // null at a root
  std::map<PageHash, std::unique_ptr<Node>> children;
  PageHash namespace_hash;  // of the root that the node hangs on

  Pages begin;  // first page, counted from token 0
  std::vector<PageHash> hashes;
  std::vector<Row> full;
  std::vector<Row> swa;  // empty in a tree without an SWA component
  Row state = kTrapRow;

  std::uint32_t full_locks = 0;  // tickets on this node and below it
  std::vector<std::uint32_t> swa_locks;
  std::uint32_t state_locks = 0;

  // What the store is believed to hold, and what is on its way there.
  bool full_stored = false;
  std::vector<std::uint8_t> swa_stored;
  bool state_stored = false;
  std::optional<OffloadId> full_pending;
  std::vector<std::uint8_t> swa_pending;
  bool state_pending = false;

  bool detached = false;  // out of the tree, kept only until its last ticket goes

  std::vector<LoadId> loading;  // loads that still fill rows of this node

  // Recency per component, and the stamp under which the eviction index holds the node (0: it does
  // not).
  std::array<std::uint64_t, 3> used{};
  std::array<std::uint64_t, 3> indexed{};

  bool is_root() const { return parent == nullptr; }
  Pages size() const { return Pages{static_cast<std::int64_t>(hashes.size())}; }
  Pages end() const { return begin + size(); }
  bool has_state() const { return state != kTrapRow; }
  // Names the prefix up to the node's end; the namespace at a root.
  const PageHash& last_hash() const { return hashes.empty() ? namespace_hash : hashes.back(); }
  std::size_t offset(Pages page) const { return (page - begin).index(); }
};

}  // namespace lockstep
