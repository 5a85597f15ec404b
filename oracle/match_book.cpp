#include "oracle/match_book.h"

namespace lockstep::oracle {

Tokens MatchRecord::expected_boundary() const {
  for (const Rank& rank : ranks) {
    if (!rank.query_store) return rank.reported_hit;
  }
  return Specification::largest_common(restorable, ranks.front().reported_hit);
}

void MatchBook::apply(const Event& event, const RequestBook& requests,
                      const std::deque<RankLedger>& ledgers, const StoreLedger& store,
                      const Specification& specification) {
  if (const auto* gave_up = std::get_if<GaveUp>(&event.body)) {
    const auto found = records_.find(event.request);
    if (found != records_.end()) found->second.gave_up = *gave_up;
    return;
  }
  const RequestRecord* request = requests.find(event.request);
  if (request == nullptr) return;
  if (has_ended(request->phase)) {
    records_.erase(event.request);
    return;
  }
  const auto* matched = std::get_if<Matched>(&event.body);
  if (matched == nullptr) return;
  MatchRecord& record = records_[event.request];
  record.ranks.resize(ledgers.size());
  record.restorable.resize(ledgers.size());
  record.gave_up.reset();
  const std::size_t rank = event.rank.index();
  record.ranks[rank] = {
      true, matched->device_hit,
      specification.device_hit(ledgers[rank].tree(), request->chain, request->length()),
      matched->query_store};
  specification.restorable(store.holdings(event.rank), request->chain, matched->device_hit,
                           request->length(), record.restorable[rank]);
}

const MatchRecord* MatchBook::find(RequestId request) const {
  const auto found = records_.find(request);
  return found == records_.end() ? nullptr : &found->second;
}

}  // namespace lockstep::oracle
