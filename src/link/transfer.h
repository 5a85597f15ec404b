// One component's part of a load or an offload: which rows, under which hashes, for which pages
// (semantics 1).
#pragma once

#include <span>
#include <vector>

#include "core/events.h"
#include "core/geometry.h"
#include "core/hash.h"
#include "core/ids.h"

namespace lockstep {

struct Transfer {
  Component component = Component::full;
  std::vector<Row> rows;
  std::vector<PageHash> hashes;  // one per row; MAMBA: of the last page below the checkpoint
  PageRange pages;               // what the rows hold; MAMBA: the page that ends at the checkpoint

  TransferView view() const { return {component, rows, hashes, pages}; }
};

// Names what a transfer moves.
class TransferPlanner {
 public:
  virtual ~TransferPlanner() = default;
  // Rows of the given pages, in order; `hashes` name exactly these pages.
  virtual Transfer pages(Component component, std::span<const PageHash> hashes, PageRange pages,
                         std::vector<Row> rows) const;
  // The checkpoint that ends at `end`, a page index past its last page. `run` names pages that end
  // there: the state is named by the last of them. REQUIRES: !run.empty().
  virtual Transfer state(std::span<const PageHash> run, Pages end, Row row) const;
};

}  // namespace lockstep
