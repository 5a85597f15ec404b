// The elements of one layer of a paged component, by token position.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/check.h"
#include "model/model.h"

namespace lockstep::model {

// Token t's `width` elements lie together; those of the tokens of one page follow each other.
// Remembers the page of the last access.
template <class Element>
class PagedLayer {
 public:
  // `skip`: elements of each page that come before these (the V of a layer follows its K).
  PagedLayer(const RowMemory& memory, std::span<const Row> table, Tokens page, LayerId layer,
             std::int64_t width, std::int64_t skip)
      : base_(memory.base + memory.layout->range_of(layer).offset.index()),
        row_bytes_(memory.layout->row_bytes.index()),
        table_(table),
        page_(page.value()),
        width_(width),
        skip_(skip) {}

  Element* at(std::int64_t position) {
    if (position < begin_ || position >= end_) seek(position);
    return elements_ + (position - begin_) * width_;
  }

  // How many tokens from `position` on, up to `end`, follow each other in memory.
  std::int64_t contiguous(std::int64_t position, std::int64_t end) {
    if (position < begin_ || position >= end_) seek(position);
    return std::min(end, end_) - position;
  }

 private:
  void seek(std::int64_t position) {
    const std::int64_t index = position / page_;
    CHECK("model.page_table", index >= 0 && static_cast<std::size_t>(index) < table_.size());
    const std::size_t row = table_[static_cast<std::size_t>(index)].index();
    elements_ = reinterpret_cast<Element*>(base_ + row * row_bytes_) + skip_;
    begin_ = index * page_;
    end_ = begin_ + page_;
  }

  std::byte* base_;
  std::size_t row_bytes_;
  std::span<const Row> table_;
  std::int64_t page_;
  std::int64_t width_;
  std::int64_t skip_;
  Element* elements_ = nullptr;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace lockstep::model
