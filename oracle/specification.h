// What is restorable: the brute-force specification of semantics 9, R1.
//
// It knows nothing of nodes, rows, locks or keys: only which contents a tree or a store holds, per
// component. A model without MAMBA counts every page multiple as having a state; a component that
// the model lacks is never asked for. Linear in the pages of one request, because every waiting
// request is matched again in every engine step.
#pragma once

#include <span>
#include <vector>

#include "core/component.h"
#include "core/geometry.h"
#include "oracle/content.h"

namespace lockstep::oracle {

// What one rank's tree, or its part of the store, holds. For MAMBA: a state taken at exactly the
// end of `content`.
class Holdings {
 public:
  virtual ~Holdings() = default;
  virtual bool has(Component component, ContentId content) const = 0;
};

class Specification {
 public:
  explicit Specification(const Geometry& geometry) : geometry_(geometry) {}

  // d: the largest page multiple <= length - 1 with FULL on [0, d), window_pages of SWA below d and
  // a state at d; else 0. `chain` names the sequence's whole pages; `length` counts all its tokens.
  Tokens device_hit(const Holdings& tree, std::span<const ContentId> chain, Tokens length) const;

  // F: the length of FULL rows from token 0 on. For models with FULL layers only.
  Tokens full_length(const Holdings& tree, std::span<const ContentId> chain) const;

  // Every p in (device_hit, length - 1] where FULL of [device_hit, p), SWA of the last
  // min(window_pages, tail) pages and the state at p exist, ascending. Replaces `boundaries`.
  void restorable(const Holdings& store, std::span<const ContentId> chain, Tokens device_hit,
                  Tokens length, std::vector<Tokens>& boundaries) const;

  // True if a request with these first pages could resume at `boundary` (> 0) from the tree alone.
  bool is_legal_hit(const Holdings& tree, std::span<const ContentId> chain, Tokens boundary) const;

  // The largest length that is in all of the sets (each ascending), or `otherwise` if there is
  // none.
  static Tokens largest_common(std::span<const std::vector<Tokens>> sets, Tokens otherwise);

 private:
  // Boundaries above `from` that `holdings` can serve, given that everything below `from` is there
  // already.
  template <class Visit>
  void walk(const Holdings& holdings, std::span<const ContentId> chain, Pages from, Tokens length,
            Visit visit) const;

  Geometry geometry_;
};

}  // namespace lockstep::oracle
