#include "pool/row_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"

namespace lockstep {
OwnedRows::OwnedRows(OwnedRows&& other) noexcept
    : rows_(std::exchange(other.rows_, {})), releaser_(other.releaser_) {}

OwnedRows& OwnedRows::operator=(OwnedRows&& other) noexcept {
  if (this == &other) return *this;
  release();
  rows_ = std::exchange(other.rows_, {});
  releaser_ = other.releaser_;
  return *this;
}

OwnedRows::~OwnedRows() {
  release();
}

Row OwnedRows::row() const {
  CHECK("owned_rows.single", rows_.size() == 1);
  return rows_.front();
}

OwnedRows OwnedRows::take_front(Rows count) {
  CHECK("owned_rows.take_front", count >= Rows{0} && count <= size());
  const auto middle = rows_.begin() + count.value();
  OwnedRows front;
  front.rows_.assign(rows_.begin(), middle);
  front.releaser_ = releaser_;
  rows_.erase(rows_.begin(), middle);
  return front;
}

void OwnedRows::append(OwnedRows other) {
  if (other.empty()) return;
  CHECK("owned_rows.same_pool", rows_.empty() || releaser_ == other.releaser_);
  releaser_ = other.releaser_;
  const std::vector<Row> rows = other.disown();
  rows_.insert(rows_.end(), rows.begin(), rows.end());
}

void OwnedRows::release() {
  if (rows_.empty()) return;
  releaser_->release(std::exchange(rows_, {}));
}

std::vector<Row> OwnedRows::disown() {
  return std::exchange(rows_, {});
}

RowPool::RowPool(Device& device, EventSink& sink, RankId rank, RowLayout layout, Rows capacity)
    : device_(device),
      sink_(sink),
      rank_(rank),
      layout_(std::move(layout)),
      capacity_(capacity),
      keep_(capacity) {
  CHECK("pool.capacity", capacity >= Rows{1});
  const std::string name = std::string(lockstep::name(component())) + " pool";
  buffer_ = device_.allocate(name, layout_.row_bytes * (capacity.value() + 1));
  free_.reserve(capacity.index());
  for (std::int64_t row = capacity.value(); row >= 1; --row) {
    free_.emplace_back(static_cast<std::uint32_t>(row));
  }
  std::vector<std::span<std::byte>> rows{bytes(kTrapRow)};
  for (Row row : free_) rows.push_back(bytes(row));
  device_.accelerator().fill(StreamKind::compute, rows, kPoisonWord);
}

std::optional<OwnedRows> RowPool::allocate(RequestId request, Rows count, Purpose purpose) {
  CHECK("pool.allocate", count >= Rows{0});
  if (count > free()) return std::nullopt;
  std::vector<Row> rows(free_.rbegin(), free_.rbegin() + count.value());
  free_.resize(free_.size() - count.index());
  if (!rows.empty()) sink_.emit(rank_, request, RowsAllocated{component(), purpose, rows});
  return OwnedRows(std::move(rows), *this);
}

void RowPool::release(std::span<const Row> rows) {
  if (rows.empty()) return;
  free_.insert(free_.end(), rows.begin(), rows.end());
  enqueue_poison(std::vector<Row>(rows.begin(), rows.end()));
  sink_.emit(rank_, kNoRequest, RowsFreed{component(), rows});
  withdraw_surplus();
}

void RowPool::shrink(Rows keep) {
  CHECK("pool.shrink", keep >= Rows{1});
  keep_ = std::min(keep_, keep);
  withdraw_surplus();
}

void RowPool::withdraw_surplus() {
  const Rows surplus = std::min(in_service() - keep_, free());
  if (surplus <= Rows{0}) return;
  const std::vector<Row> rows(free_.rbegin(), free_.rbegin() + surplus.value());
  free_.resize(free_.size() - surplus.index());
  withdrawn_.insert(withdrawn_.end(), rows.begin(), rows.end());
  sink_.emit(rank_, kNoRequest, RowsWithdrawn{component(), rows});
}

// Costs no time: a real engine leaves freed rows as they are.
void RowPool::enqueue_poison(std::vector<Row> rows) {
  Op op{.name = "pool.poison", .link = Link::none};
  op.fills.word = kPoisonWord;
  for (Row row : rows) op.fills.targets.push_back(bytes(row));
  op.accesses = [this, freed = std::move(rows)](const AccessSink& access) {
    for (Row row : freed) {
      for (const LayerPart& part : layout_.parts) {
        access(Access{component(), row, part.layer, part.part, AccessMode::write});
      }
    }
  };
  device_.enqueue(StreamKind::compute, std::move(op));
}

std::span<std::byte> RowPool::bytes(Row row) {
  CHECK("pool.row", row.index() <= capacity_.index());
  return buffer_.subspan(row.index() * layout_.row_bytes.index(), layout_.row_bytes.index());
}

std::span<const std::byte> RowPool::bytes(Row row) const {
  CHECK("pool.row", row.index() <= capacity_.index());
  return buffer_.subspan(row.index() * layout_.row_bytes.index(), layout_.row_bytes.index());
}

}  // namespace lockstep
