// libFuzzer: the reader of scenarios takes any bytes. What it accepts, it writes and reads again as
// the same value.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/scenario_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<sim::Scenario> scenario = sim::parse_scenario(text, "input");
  if (!scenario) return 0;
  const Result<sim::Scenario> again = sim::parse_scenario(sim::write_scenario(*scenario), "input");
  if (!again || !(*again == *scenario)) std::abort();
  return 0;
}
