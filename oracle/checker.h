// What every family of checks looks at, and when it is asked.
#pragma once

#include <deque>

#include "core/events.h"
#include "core/inspect.h"
#include "oracle/content.h"
#include "oracle/findings.h"
#include "oracle/judge.h"
#include "oracle/match_book.h"
#include "oracle/rank_ledger.h"
#include "oracle/replica.h"
#include "oracle/request_book.h"
#include "oracle/specification.h"
#include "oracle/store_ledger.h"

namespace lockstep::oracle {

// The oracle's picture of the run. Owned by the judge; the parts are replaced when the engine
// restarts.
struct Scene {
  const JudgeConfig& config;
  const ContentTable& contents;
  const RequestBook& requests;
  const std::deque<RankLedger>& ledgers;  // one per rank
  const StoreLedger& store;
  const Specification& specification;
  const MatchBook& matches;
  Replica& replica;
  Findings& findings;
  Verdict& verdict;

  const Geometry& geometry() const { return config.geometry; }
  const RankLedger& ledger(RankId rank) const { return ledgers[rank.index()]; }
  const Inspector& inspector(RankId rank) const { return *config.ranks[rank.index()]; }
  static Script script(const RequestRecord& request) {
    return {request.extra_key, request.tokens, request.chain, request.prompt + request.decode};
  }
  // The request's sequence known to the replica as far as `end` tokens.
  void advance_replica(const RequestRecord& request, Tokens end) const {
    replica.advance(request.id, script(request), end);
  }
};

// One family of invariants. For each event: before(), then the ledgers follow the event, then
// after().
class Checker {
 public:
  virtual ~Checker() = default;
  virtual void before(const Event&) {}
  virtual void after(const Event&) {}
  // In full, at a moment between two phases (a COMMIT's end, a step's begin): the Inspector is
  // coherent.
  virtual void audit(RankId, bool /*quiescent*/) {}
  virtual void end_of_run() {}
};

}  // namespace lockstep::oracle
