#include "oracle/specification.h"

#include <algorithm>

namespace lockstep::oracle {

template <class Visit>
void Specification::walk(const Holdings& holdings, std::span<const ContentId> chain, Pages from,
                         Tokens length, Visit visit) const {
  const Pages limit =
      std::min(geometry_.pages(length - Tokens{1}), Pages{static_cast<std::int64_t>(chain.size())});
  Pages window_run{0};  // SWA pages that are there without a gap, ending at the page in hand
  for (Pages page = from; page < limit; ++page) {
    const ContentId content = chain[page.index()];
    if (geometry_.has_full && !holdings.has(Component::full, content)) return;
    const Pages boundary = page + Pages{1};
    if (geometry_.has_swa) {
      window_run = holdings.has(Component::swa, content) ? window_run + Pages{1} : Pages{0};
      if (window_run < std::min(geometry_.window_pages(), boundary - from)) continue;
    }
    if (geometry_.has_mamba && !holdings.has(Component::mamba, content)) continue;
    visit(geometry_.tokens(boundary));
  }
}

Tokens Specification::device_hit(const Holdings& tree, std::span<const ContentId> chain,
                                 Tokens length) const {
  Tokens hit{0};
  walk(tree, chain, Pages{0}, length, [&](Tokens boundary) { hit = boundary; });
  return hit;
}

Tokens Specification::full_length(const Holdings& tree, std::span<const ContentId> chain) const {
  const auto missing = std::ranges::find_if(
      chain, [&](ContentId content) { return !tree.has(Component::full, content); });
  return geometry_.tokens(Pages{missing - chain.begin()});
}

void Specification::restorable(const Holdings& store, std::span<const ContentId> chain,
                               Tokens device_hit, Tokens length,
                               std::vector<Tokens>& boundaries) const {
  boundaries.clear();
  walk(store, chain, geometry_.pages(device_hit), length,
       [&](Tokens boundary) { boundaries.push_back(boundary); });
}

bool Specification::is_legal_hit(const Holdings& tree, std::span<const ContentId> chain,
                                 Tokens boundary) const {
  return device_hit(tree, chain.first(geometry_.pages(boundary).index()), boundary + Tokens{1}) ==
         boundary;
}

Tokens Specification::largest_common(std::span<const std::vector<Tokens>> sets, Tokens otherwise) {
  if (sets.empty()) return otherwise;
  for (auto candidate = sets.front().rbegin(); candidate != sets.front().rend(); ++candidate) {
    const auto has_it = [&](const std::vector<Tokens>& set) {
      return std::binary_search(set.begin(), set.end(), *candidate);
    };
    if (std::all_of(sets.begin(), sets.end(), has_it)) return *candidate;
  }
  return otherwise;
}

}  // namespace lockstep::oracle
