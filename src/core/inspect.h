// What the system under test shows when it is asked (the other half of observation, semantics 9).
// Nothing here changes anything; spans and references are valid only during the call that hands
// them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/component.h"
#include "core/events.h"
#include "core/hash.h"
#include "core/ids.h"

namespace lockstep {

struct NodeView {
  NodeId id;
  NodeId parent;  // the root's own id at a root
  bool is_root = false;
  Pages begin;
  std::span<const PageHash> hashes;  // one per page
  std::span<const Row> full;         // one per page
  std::span<const Row> swa;  // one per page, trap: tombstone; empty without an SWA component
  Row state = kTrapRow;      // trap: none
  std::size_t children = 0;
  std::uint32_t full_locks = 0;
  std::span<const std::uint32_t> swa_locks;  // one per page
  std::uint32_t state_locks = 0;
  bool full_stored = false;
  std::span<const std::uint8_t> swa_stored;  // one per page
  bool state_stored = false;
  bool offload_pending = false;
  bool loading = false;  // rows of this node are still being filled
};

// Rows that a request refers to on one rank. The first `*_own_from` pages are the tree's, the rest
// its own.
struct RequestRowsView {
  RequestId request;
  std::span<const Row> full;
  Pages full_own_from;
  std::span<const Row> swa;  // trap where the page is below the cursor, released or absent
  Pages swa_own_from;
  Row q = kTrapRow;
  std::span<const SnapshotView> tracked;  // its tracking slots, written or about to be
  std::span<const SnapshotView> columns;  // its slots for states inside a forward over drafts
  Row pending_source = kTrapRow;          // source of a copy that has not run yet
  bool clear_pending = false;
};

// A load or an offload in progress. `owned` rows belong to the transfer itself (quarantined ones
// included).
struct TransferRowsView {
  Component component = Component::full;
  std::span<const Row> rows;
  bool owned = false;
  bool is_load = false;
};

class Inspector {
 public:
  virtual ~Inspector() = default;

  virtual bool has(Component component) const = 0;
  virtual Rows capacity(Component component) const = 0;  // without the trap row
  virtual std::vector<Row> free_rows(
      Component component) const = 0;  // the free list as it is, duplicates included
  // Rows that have left the pool for good, and that nobody owns.
  virtual std::vector<Row> withdrawn_rows(Component component) const = 0;
  virtual Rows evictable_rows(Component component) const = 0;  // what eviction could free now
  virtual void for_each_node(
      const std::function<void(const NodeView&)>& visit) const = 0;  // parents first, roots too
  virtual void for_each_request(const std::function<void(const RequestRowsView&)>& visit) const = 0;
  virtual void for_each_transfer(
      const std::function<void(const TransferRowsView&)>& visit) const = 0;
  virtual std::size_t pending_loads() const = 0;
  virtual std::size_t pending_offloads() const = 0;

  // The request's rows, or false if the cache does not know it.
  virtual bool request_rows(RequestId request,
                            const std::function<void(const RequestRowsView&)>& visit) const = 0;
  // One node by id, or false if there is none.
  virtual bool node(NodeId id, const std::function<void(const NodeView&)>& visit) const = 0;

  // The bytes of a row as the device holds them now; valid until the next call. Includes the trap
  // row.
  virtual std::span<const std::byte> row_bytes(Component component, Row row) const = 0;
};

}  // namespace lockstep
