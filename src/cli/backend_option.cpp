#include "cli/backend_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "cli/terminal.h"

namespace lockstep::cli {

ChosenBackend choose_backend(const BackendArguments& arguments) {
  const std::optional<sim::BackendKind> kind = sim::find_backend(arguments.name);
  if (!kind) {
    return {{},
            refuse(Error{fmt::format("--backend {}: expected one of {}", arguments.name,
                                     fmt::join(sim::backend_names(), ", "))})};
  }
  const sim::Backend backend{*kind, arguments.free_running};
  if (const auto made = sim::make_accelerators(backend, 1); !made) {
    fmt::print(stderr, "--backend {}: {}\n", arguments.name, made.error().message);
    return {backend, ExitStatus::missing};
  }
  return {backend, std::nullopt};
}

}  // namespace lockstep::cli
