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
  if (std::holds_alternative<LookedUp>(event.body))
    return correct(event.rank, *request, store, specification);
  const auto* matched = std::get_if<Matched>(&event.body);
  if (matched == nullptr) return;
  MatchRecord& record = records_[event.request];
  record.ranks.resize(ledgers.size());
  record.restorable.resize(ledgers.size());
  record.gave_up.reset();
  const std::size_t rank = event.rank.index();
  record.ranks[rank] = {
      true,
      matched->device_hit,
      specification.device_hit(ledgers[rank].tree(), request->chain, request->length()),
      specification.full_length(ledgers[rank].tree(), request->chain),
      matched->query_store,
      store.version()};
  specification.restorable(store.holdings(event.rank), request->chain, matched->device_hit,
                           request->length(), record.restorable[rank]);
}

void MatchBook::correct(RankId rank, const RequestRecord& request, const StoreLedger& store,
                        const Specification& specification) {
  const auto found = records_.find(request.id);
  if (found == records_.end()) return;
  MatchRecord& record = found->second;
  const bool is_good = record.ranks[rank.index()].store_version == store.version();
  if (is_good && !store.answered_falsely(rank)) return;
  specification.restorable(store.answers(rank), request.chain,
                           record.ranks[rank.index()].reported_hit, request.length(),
                           record.restorable[rank.index()]);
}

const MatchRecord* MatchBook::find(RequestId request) const {
  const auto found = records_.find(request);
  return found == records_.end() ? nullptr : &found->second;
}

}  // namespace lockstep::oracle
