// A trace names blocks by ids; the engine wants tokens. Equal ids of one scope give equal tokens,
// different ids or scopes different ones; the last, partial block of a prompt is its own (seeded by
// the request's place in the trace), because its id does not say how much of it is shared.
//
// Generated tokens come from the model and so never match what the trace's next turn continues
// with: a turn reuses what the trace says is shared, never more.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ids.h"
#include "sim/trace_file.h"

namespace lockstep::sim {

// The prompt of `request`, the `ordinal`-th of its trace: tokens in [1, vocab). REQUIRES: vocab
// >= 2.
std::vector<TokenId> trace_tokens(const TraceRequest& request, std::uint64_t ordinal,
                                  std::int64_t vocab);

}  // namespace lockstep::sim
