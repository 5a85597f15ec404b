#include "model/device_fingerprint.h"

#include "core/check.h"
#include "model/device_segment.h"
#include "model/fingerprint_kernels.h"

namespace lockstep::model {

namespace {

using fingerprint::Word;

constexpr std::int64_t kWordBytes = sizeof(Word);

Word* device_words(std::span<std::byte> bytes) {
  return reinterpret_cast<Word*>(bytes.data());
}

Word* layer_in_row_0(const RowMemory& memory, LayerId layer) {
  return reinterpret_cast<Word*>(memory.base + memory.layout->range_of(layer).offset.index());
}

std::int64_t words_of(Bytes bytes) {
  return bytes.value() / kWordBytes;
}

}  // namespace

void DeviceFingerprint::embed(const Segment& segment, std::span<std::byte> activations) const {
  const DeviceSegment device(segment);
  device.upload(accelerator_);
  if (!segment.input.empty()) {
    const auto* output = reinterpret_cast<const Word*>(segment.input.data());
    launch(accelerator_, StreamKind::compute,
           FingerprintNextKernel{output, vocab(), device.tokens() + device.token_count() - 1}, 1);
  }
  const FingerprintEmbedKernel kernel{embedding_key_of(segment), device.tokens(),
                                      device.token_count(), device_words(activations)};
  launch(accelerator_, StreamKind::compute, kernel, (kernel.count + kWarpLanes - 1) / kWarpLanes);
}

void DeviceFingerprint::run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                                  std::span<std::byte> activations) const {
  const DeviceSegment device(segment);
  if (layers()[layer.index()].recurrent) {
    const RowMemory& slots = memory.of(Component::mamba);
    const FingerprintRecurKernel kernel{layer_key(layer),
                                        layer_in_row_0(slots, layer),
                                        words_of(slots.layout->row_bytes),
                                        words_of(slots.layout->range_of(layer).size),
                                        conv_words(),
                                        segment.q.value(),
                                        device.token_count(),
                                        device.snapshots(),
                                        std::ssize(segment.snapshots),
                                        device_words(activations)};
    launch(accelerator_, StreamKind::compute, kernel, 1);
    return;
  }
  const bool full = layers()[layer.index()].attention == Attention::full;
  const RowMemory& pages = memory.of(full ? Component::full : Component::swa);
  const FingerprintAttendKernel kernel{
      layer_key(layer),
      {layer_in_row_0(pages, layer), full ? device.full() : device.swa(),
       words_of(pages.layout->row_bytes), memory.page.value()},
      cache_page().value(),
      full ? 0 : geometry().window.value(),
      segment.start.value(),
      device.token_count(),
      device.tokens(),
      device_words(activations)};
  launch(accelerator_, StreamKind::compute, kernel, 1);
}

void DeviceFingerprint::head(const Segment& /*segment*/, std::span<const std::byte> activations,
                             std::span<std::byte> outputs) const {
  CopyList copies;
  copies.add(outputs, activations);
  accelerator_.copy(StreamKind::compute, copies, 0, 1);
}

void DeviceFingerprint::clear_slot(std::span<std::byte> slot) const {
  const FingerprintClearKernel kernel{device_words(slot), std::ssize(slot) / kWordBytes,
                                      2 + conv_words() + 1};
  launch(accelerator_, StreamKind::compute, kernel, (kernel.words + kWarpLanes - 1) / kWarpLanes);
}

}  // namespace lockstep::model
