// CHECK: the one way to state an internal contract. Always on; keep the condition O(1).
//
// A violated CHECK throws ContractFailure. The simulator catches it, ends the run and reports the
// violation `CHECK:<name>`; nobody else catches it, so that outside a simulation the process ends.
// It is not an error path: a function that can fail returns a Result.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace lockstep {

class ContractFailure : public std::logic_error {
 public:
  ContractFailure(std::string_view name, std::string_view condition, std::string_view file,
                  int line);
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

[[noreturn]] void fail_contract(std::string_view name, std::string_view condition,
                                std::string_view file, int line);

}  // namespace lockstep

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): needs the text and the place of the condition
#define CHECK(name, condition)        \
  ((condition) ? static_cast<void>(0) \
               : ::lockstep::fail_contract((name), #condition, __FILE__, __LINE__))
