#include "sim/access_check.h"

#include <algorithm>
#include <cstring>

namespace lockstep::sim {

namespace {

void poison(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof kPoisonWord) {
    std::memcpy(&bytes[at], &kPoisonWord, std::min(sizeof kPoisonWord, bytes.size() - at));
  }
}

bool is_poison(std::span<const std::byte> bytes) {
  std::vector<std::byte> wanted(bytes.size());
  poison(wanted);
  return std::ranges::equal(bytes, wanted);
}

}  // namespace

void AccessCheck::watch(PoolGroup& pools) {
  for (Component component : kComponents) {
    if (!pools.has(component)) continue;
    RowPool& pool = pools.pool(component);
    for (std::uint32_t r = 0; r <= pool.capacity().index(); ++r) {
      const Row row{r};
      for (const LayerPart& part : pool.layout().parts) {
        at_.emplace(std::tuple(component, row, part.layer, part.part), cells_.size());
        cells_.push_back({component, row, part,
                          pool.bytes(row).subspan(part.offset.index(), part.size.index())});
      }
    }
  }
}

void AccessCheck::declare(const Access& access) {
  const auto [first, last] =
      at_.equal_range({access.component, access.row, access.layer, access.part});
  CHECK("access_check.access", first != last);
  for (auto at = first; at != last; ++at) {
    Cell& cell = cells_[at->second];
    cell.declared = true;
    cell.written = cell.written || access.mode == AccessMode::write;
  }
}

void AccessCheck::bytes_begin(const Op& op) {
  for (Cell& cell : cells_) {
    cell.declared = cell.written = false;
    cell.before.assign(cell.bytes.begin(), cell.bytes.end());
  }
  if (op.accesses) op.accesses([this](const Access& access) { declare(access); });
  for (Cell& cell : cells_) {
    if (!cell.declared) poison(cell.bytes);
  }
}

void AccessCheck::bytes_end(const Op& op) {
  for (const Cell& cell : cells_) {
    if (cell.written) continue;
    const bool kept =
        cell.declared ? std::ranges::equal(cell.bytes, cell.before) : is_poison(cell.bytes);
    if (!kept) {
      report_({op.name, cell.component, cell.row, cell.part.layer, cell.part.part});
    }
    std::ranges::copy(cell.before, cell.bytes.begin());
  }
}

}  // namespace lockstep::sim
