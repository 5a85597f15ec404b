// The rows that LOAD has taken for the tail [device hit, boundary) of a request, until an INSERT
// hands them to the tree.
#pragma once

#include "pool/row_pool.h"

namespace lockstep {

struct LoadRows {
  OwnedRows full;
  OwnedRows swa;           // of the trailing window pages
  OwnedRows state;         // T
  OwnedRows private_slot;  // becomes Q

  // In reverse order of LOAD.
  void release() {
    private_slot.release();
    state.release();
    swa.release();
    full.release();
  }
  // For good: the pools end, and the device may be about to write the rows.
  void disown() {
    private_slot.disown();
    state.disown();
    swa.disown();
    full.disown();
  }
};

}  // namespace lockstep
