#include "oracle/page_memo.h"

#include <algorithm>

#include "core/check.h"

namespace lockstep::oracle {

PageMemo::PageMemo(Bytes record_bytes, Bytes limit)
    : record_bytes_(record_bytes.index()),
      most_records_(
          std::max<std::size_t>(1, limit.index() / std::max<std::size_t>(1, record_bytes_))) {}

std::span<const std::byte> PageMemo::find(ContentId content) const {
  const auto found = records_.find(content);
  if (found == records_.end()) return {};
  return found->second.bytes;
}

std::span<std::byte> PageMemo::add(ContentId content) {
  CHECK("page_memo.add", !has(content));
  if (records_.size() == most_records_) {
    records_.erase(by_use_.front());
    by_use_.pop_front();
  }
  by_use_.push_back(content);
  Record& record = records_[content];
  record.place = std::prev(by_use_.end());
  record.bytes.resize(record_bytes_);
  return record.bytes;
}

void PageMemo::touch(ContentId content) {
  const auto found = records_.find(content);
  if (found != records_.end()) by_use_.splice(by_use_.end(), by_use_, found->second.place);
}

}  // namespace lockstep::oracle
