// The fingerprint model on an accelerator (make_model() with one).
#pragma once

#include "device/accelerator.h"
#include "model/fingerprint.h"

namespace lockstep::model {

class DeviceFingerprint final : public Fingerprint {
 public:
  DeviceFingerprint(const ModelConfig& config, std::uint64_t weight_seed, Tokens cache_page,
                    Accelerator& accelerator)
      : Fingerprint(config, weight_seed, cache_page), accelerator_(accelerator) {}

  void embed(const Segment& segment, std::span<std::byte> activations) const override;
  void run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                 std::span<std::byte> activations) const override;
  void head(const Segment& segment, std::span<const std::byte> activations,
            std::span<std::byte> outputs) const override;
  void clear_slot(std::span<std::byte> slot) const override;

 private:
  Accelerator& accelerator_;
};

}  // namespace lockstep::model
