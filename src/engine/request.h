// A request as the engine schedules it; what the caches know about it is theirs
// (link/request_state.h).
//
//   waiting --admit--> [loading -->] running (prefill, then decode) --all tokens--> finishing
//   --inserted--> gone
//      ^---------------retract----------------'
//
// `loading` only under `publish` = after_load: nothing of the request is published yet.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ids.h"
#include "link/cache.h"

namespace lockstep::engine {

enum class Phase { waiting, loading, running, finishing };

// Points of a request's life at which a scenario can hold it or stop.
enum class Point { matched, looked_up, loaded, committed, landed, copied, first_token, finished };

struct Submission {
  std::vector<TokenId> prompt;
  Tokens decode;  // tokens to generate, >= 1
  RequestNamespace names;
};

struct Request {
  RequestId id;
  RequestNamespace names;
  std::vector<TokenId> tokens;  // prompt and what was generated
  Tokens target;                // tokens.size() at the end
  Tokens prefill_end;           // tokens up to here are fed in prompt chunks
  Tokens fed;                   // restored, or computed by forwards whose results are taken
  Tokens planned;               // fed, or computed by forwards in flight
  Tokens sampling;              // tokens that forwards in flight generate
  Phase phase = Phase::waiting;

  // The last MATCH, LOOKUP and vote.
  bool has_result = false;  // still good: matched in this step, or held since
  bool looked_up = false;
  Tokens device_hit;
  Tokens boundary;

  std::optional<LoadId> load;  // phase loading, until its verdict

  bool query_store = true;  // false once a load on its path has failed
  // Counts how often it has lost its place: results of forwards from before are dropped.
  std::uint64_t generation = 0;

  std::optional<Point> hold_at;
  bool held = false;
  std::set<Point> reached;

  // Has lost rows and results, and is matched again with all tokens that it has.
  void wait_again() {
    phase = Phase::waiting;
    has_result = false;
    load.reset();
    fed = planned = sampling = Tokens{0};
    prefill_end = length();
    ++generation;
  }

  Tokens length() const { return Tokens{static_cast<std::int64_t>(tokens.size())}; }
  // With the tokens that forwards in flight generate.
  Tokens coming() const { return length() + sampling; }
  bool decoding() const { return planned >= prefill_end; }
  // The next token to feed is its last one, which no output comes from: only an engine that runs
  // ahead feeds it, before it knows.
  bool overshoots() const { return planned + Tokens{1} == target; }
};

}  // namespace lockstep::engine
