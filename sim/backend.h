// What moves the bytes of a run, and whether the simulator or the device decides when.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/accelerator.h"

namespace lockstep::sim {

enum class BackendKind { host, emulated, cuda };

struct Backend {
  BackendKind kind = BackendKind::host;
  // Streams run at their own speed instead of the simulator's order: no schedules and no race
  // detector, and the digest depends on timing. The outputs' digest does not.
  bool free_running = false;

  // Models run as kernels; the host's own loops are for the host's own memory.
  bool runs_kernels() const { return kind != BackendKind::host; }
  std::string name() const;  // "cuda", "cuda, free-running"
};

std::vector<std::string> backend_names();
std::optional<BackendKind> find_backend(std::string_view name);

// One per rank, all on one device. An error says what this machine or this build lacks.
Result<std::vector<std::unique_ptr<Accelerator>>> make_accelerators(const Backend& backend,
                                                                    std::int64_t ranks);

}  // namespace lockstep::sim
