// libFuzzer: the reader of traces takes any bytes: JSON lines, sessions, tar archives, xz streams.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "sim/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const Result<std::vector<sim::TraceRequest>> requests = sim::parse_trace(bytes, "input");
  if (!requests) return 0;
  // What the rest of the program relies on.
  std::set<std::string> names;
  for (const sim::TraceRequest& request : *requests) {
    const bool sane = request.input > Tokens{0} && request.output > Tokens{0} &&
                      request.block > Tokens{0} && names.insert(request.name).second;
    if (!sane) std::abort();
  }
  return 0;
}
