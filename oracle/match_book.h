// For each request, what MATCH and LOOKUP should have answered the last time they ran for it: the
// specification at that instant, over what the store answered (injected false answers are the
// store's word, not the linker's fault; a request that is held looks up later than it matched). R1
// compares the answers with it, B1 the boundary that was committed.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/events.h"
#include "oracle/rank_ledger.h"
#include "oracle/request_book.h"
#include "oracle/specification.h"
#include "oracle/store_ledger.h"

namespace lockstep::oracle {

struct MatchRecord {
  struct Rank {
    bool matched = false;
    Tokens reported_hit;
    Tokens expected_hit;
    Tokens expected_full;
    bool query_store = true;
    std::uint64_t store_version = 0;  // then
  };
  std::vector<Rank> ranks;
  std::vector<std::vector<Tokens>> restorable;  // by rank, above the reported hit
  std::optional<GaveUp> gave_up;                // since then

  // L: the largest length that every rank can restore, or the device hit.
  Tokens expected_boundary() const;
};

class MatchBook {
 public:
  // `event` has been applied to the ledgers.
  void apply(const Event& event, const RequestBook& requests, const std::deque<RankLedger>& ledgers,
             const StoreLedger& store, const Specification& specification);
  // Null before the request's first MATCH.
  const MatchRecord* find(RequestId request) const;
  void clear() { records_.clear(); }

 private:
  // A LOOKUP was answered: anew if the store has changed since the MATCH, or answered falsely.
  void correct(RankId rank, const RequestRecord& request, const StoreLedger& store,
               const Specification& specification);

  std::map<RequestId, MatchRecord> records_;
};

}  // namespace lockstep::oracle
