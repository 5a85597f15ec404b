#include "device/copy_list.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace lockstep {

namespace {

constexpr std::size_t kWord = 8;

// Where piece `piece` begins: the pieces are about equal, cut between words.
std::size_t cut(std::size_t size, std::size_t piece, std::size_t pieces) {
  if (piece == pieces) return size;
  return size / kWord * piece / pieces * kWord;
}

}  // namespace

void CopyList::add(std::span<std::byte> target, std::span<const std::byte> source) {
  CHECK("copy_list.sizes", target.size() == source.size());
  if (source.empty()) return;
  ranges_.push_back({target.data(), source.data(), source.size()});
  size_ += Bytes{static_cast<std::int64_t>(source.size())};
}

template <class Visit>
void CopyList::visit(std::size_t piece, std::size_t pieces, const Visit& visit_range) const {
  CHECK("copy_list.piece", piece < pieces);
  const std::size_t begin = cut(size_.index(), piece, pieces);
  const std::size_t end = cut(size_.index(), piece + 1, pieces);
  std::size_t at = 0;  // where the range begins, counted over all ranges
  for (const Range& range : ranges_) {
    if (at >= end) break;
    const std::size_t from = std::max(begin, at) - at;
    const std::size_t to = std::min(end - at, range.size);
    if (from < to) visit_range(Range{range.target + from, range.source + from, to - from});
    at += range.size;
  }
}

void CopyList::copy(std::size_t piece, std::size_t pieces) const {
  visit(piece, pieces,
        [](const Range& range) { std::memcpy(range.target, range.source, range.size); });
}

std::vector<CopyList::Range> CopyList::ranges(std::size_t piece, std::size_t pieces) const {
  std::vector<Range> list;
  visit(piece, pieces, [&](const Range& range) { list.push_back(range); });
  return list;
}

}  // namespace lockstep
