// Request traces of real systems, read from files.
//
// Two formats, told apart by their content:
// - Mooncake JSON lines: timestamp, input_length, output_length, hash_ids; blocks of 512 tokens,
// the last id of a request
//   stands for a partial block where the input is no multiple of 512.
// - Agent sessions: one JSON document per session with block_size and requests (t, in, out,
// hash_ids), some of which are
//   subagents with requests of their own; ids for whole blocks only, local to the session.
// A file may be plain, .xz, or an (xz-compressed) tar archive of sessions in archive order; "-" is
// standard input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace lockstep::sim {

struct TraceRequest {
  std::string name;  // unique in the trace: "line 17", "trace_0365/12", "trace_0365/agent_001/3"
  Tokens input;      // prompt
  Tokens output;     // generated
  Tokens block;      // tokens that one id stands for
  std::vector<std::uint64_t> blocks;  // ids of the prompt's blocks, in order
  std::string scope;  // equal ids mean equal tokens only within one scope; empty: the whole trace

  // Blocks that are whole: only these are shared between requests.
  std::int64_t whole_blocks() const { return input / block; }
};

// The requests in order. An error names the file, the line or the JSON pointer, and what was
// expected.
Result<std::vector<TraceRequest>> read_trace(const std::string& path);
// The same from bytes in memory; `source` names them in errors.
Result<std::vector<TraceRequest>> parse_trace(std::string bytes, const std::string& source);

}  // namespace lockstep::sim
