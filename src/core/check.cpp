#include "core/check.h"

namespace lockstep {

ContractFailure::ContractFailure(std::string_view name, std::string_view condition,
                                 std::string_view file, int line)
    : std::logic_error("CHECK " + std::string(name) + " failed: " + std::string(condition) +
                       " at " + std::string(file) + ":" + std::to_string(line)),
      name_(name) {}

void fail_contract(std::string_view name, std::string_view condition, std::string_view file,
                   int line) {
  throw ContractFailure(name, condition, file, line);
}

}  // namespace lockstep
