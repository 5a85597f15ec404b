// A bounded memory of what the replica has computed, one record of bytes per content; the least
// recently used go first.
#pragma once

#include <cstddef>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/ids.h"
#include "oracle/content.h"

namespace lockstep::oracle {

class PageMemo {
 public:
  PageMemo(Bytes record_bytes, Bytes limit);

  bool has(ContentId content) const { return records_.contains(content); }
  // Empty if the content is not (or no longer) known; valid until the next call of add().
  std::span<const std::byte> find(ContentId content) const;
  // The record to fill in. REQUIRES: !has(content).
  std::span<std::byte> add(ContentId content);
  // Counts as a use. Whoever uses a chain touches its end first and its beginning last: without its
  // first pages the rest of a chain is of no use.
  void touch(ContentId content);

 private:
  struct Record {
    std::vector<std::byte> bytes;
    std::list<ContentId>::iterator place;
  };
  std::size_t record_bytes_;
  std::size_t most_records_;
  std::unordered_map<ContentId, Record> records_;  // looked up only, never iterated
  std::list<ContentId> by_use_;                    // least recently used first
};

}  // namespace lockstep::oracle
