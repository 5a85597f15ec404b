// What one rank's cache knows about one request, from its submission to its end.
//
//   pages   0 ........ own_from ........ tables' end
//   full    tree's     | the request's own (own_full)
//   swa     tree's     | own (own_swa), from swa_own_from; below the cursor nothing of its own is
//   left
//
// Q is the request's private slot. `tracked` are checkpoints that forwards leave in slots of the
// request until an INSERT donates them or the request ends.
#pragma once

#include <optional>
#include <vector>

#include "core/events.h"
#include "core/hash.h"
#include "core/ids.h"
#include "link/load_rows.h"
#include "pool/row_pool.h"
#include "tree/lock.h"
#include "tree/node.h"

namespace lockstep {

struct Checkpoint {
  Tokens depth;
  OwnedRows slot;
  bool written = false;  // by a forward that the engine accepted
  bool decode = false;   // one of the decode pair
  bool superseded =
      false;  // a newer one of the decode pair is written: this one is not donated any more
};

struct PendingCopy {
  Row source;
  LockTicket lock;
  bool enqueued = false;  // behind a forward that has not been accepted yet
};

struct RequestState {
  RequestId id;
  PageHash namespace_hash;
  std::vector<PageHash> hashes;  // of the whole pages of its tokens, as far as they were needed

  // MATCH and LOOKUP
  Tokens device_hit;
  Tokens full_matched;   // F
  Tokens deepest_state;  // deepest state on the matched path, 0 if none
  Node* node =
      nullptr;  // the node that ends at the hit, later at the last boundary inserted; null: none
  LockTicket lock;
  std::vector<Tokens> restorable;  // ascending, in (device_hit, limit]

  // from LOAD on
  Tokens boundary;  // L
  Tokens fed;       // restored, or computed by forwards that the engine accepted
  CommitId commit;  // the last one
  LoadRows load;
  std::optional<LoadId> filling;  // `after_load`: the load under way that fills the rows of `load`
  std::vector<Row> full;          // page tables, from page 0
  std::vector<Row> swa;
  OwnedRows own_full;
  Pages own_from;
  OwnedRows own_swa;
  Pages swa_own_from;
  Tokens swa_cursor;
  OwnedRows q;
  std::optional<PendingCopy> pending_copy;
  bool clear_pending = false;
  std::vector<LoadId>
      awaited;  // loads that still fill rows of its path: the forward in flight waits for them
  std::vector<Checkpoint> tracked;  // ascending by depth
  // Of a forward over drafts (link/draft_columns.h): column i holds the state after the token
  // `drafts_from` + i.
  OwnedRows columns;
  Tokens drafts_from;
};

}  // namespace lockstep
