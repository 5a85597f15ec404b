// Byte ranges to copy, one after the other, that may be copied in pieces: whoever reads in between
// sees torn bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/ids.h"

namespace lockstep {

class CopyList {
 public:
  // Neither span's memory moves or ends before the copy is done. REQUIRES: equal sizes.
  void add(std::span<std::byte> target, std::span<const std::byte> source);

  bool empty() const { return ranges_.empty(); }
  Bytes size() const { return size_; }
  // Copies piece `piece` of `pieces`; all of them in order copy everything once. A word of 8 bytes
  // is never torn where every range is a multiple of 8 bytes. REQUIRES: piece < pieces.
  void copy(std::size_t piece, std::size_t pieces) const;

  struct Range {
    std::byte* target = nullptr;
    const std::byte* source = nullptr;
    std::size_t size = 0;
  };
  // What copy() of that piece copies, in order.
  std::vector<Range> ranges(std::size_t piece, std::size_t pieces) const;

 private:
  template <class Visit>
  void visit(std::size_t piece, std::size_t pieces, const Visit& visit_range) const;

  std::vector<Range> ranges_;
  Bytes size_;
};

}  // namespace lockstep
