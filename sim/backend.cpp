#include "sim/backend.h"

#include <array>

#include "device/cuda_accelerator.h"
#include "device/guarded_accelerator.h"

namespace lockstep::sim {

namespace {

constexpr std::array<std::string_view, 3> kBackendNames{"host", "emulated", "cuda"};

}  // namespace

std::string Backend::name() const {
  const std::string kind_name(kBackendNames[static_cast<std::size_t>(kind)]);
  return free_running ? kind_name + ", free-running" : kind_name;
}

std::vector<std::string> backend_names() {
  return {kBackendNames.begin(), kBackendNames.end()};
}

std::optional<BackendKind> find_backend(std::string_view name) {
  for (std::size_t i = 0; i < kBackendNames.size(); ++i) {
    if (kBackendNames[i] == name) return static_cast<BackendKind>(i);
  }
  return std::nullopt;
}

Result<std::vector<std::unique_ptr<Accelerator>>> make_accelerators(const Backend& backend,
                                                                    std::int64_t ranks) {
  std::vector<std::unique_ptr<Accelerator>> accelerators;
  const auto device = backend.kind == BackendKind::emulated
                          ? std::make_shared<GuardedDevice>(backend.free_running)
                          : nullptr;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (backend.kind == BackendKind::host) {
      accelerators.push_back(std::make_unique<HostAccelerator>());
    } else if (backend.kind == BackendKind::emulated) {
      accelerators.push_back(std::make_unique<GuardedAccelerator>(device));
    } else {
      auto made = make_cuda_accelerator();
      if (!made) return made.error();
      accelerators.push_back(std::move(*made));
    }
  }
  return accelerators;
}

}  // namespace lockstep::sim
