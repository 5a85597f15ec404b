#include "model/model.h"

#include "core/check.h"

namespace lockstep::model {
namespace {

LayerShape layer_shape(const ModelConfig& config, Mixer mixer) {
  // Every layer of Inkling has convolutions, whatever it mixes tokens with.
  const bool convolutions = config.arithmetic == Arithmetic::inkling && config.shape.convolutions;
  switch (mixer) {
    case Mixer::full:
      return {Attention::full, convolutions};
    case Mixer::swa:
      return {Attention::swa, convolutions};
    case Mixer::full_mamba2:
      return {Attention::full, true};
    case Mixer::recurrent:
    case Mixer::mamba2:
    case Mixer::gdn:
    case Mixer::kda:
    case Mixer::shortconv:
      return {Attention::none, true};
  }
  return {};
}

}  // namespace

Geometry geometry_of(const ModelConfig& config) {
  Geometry geometry;
  for (const Mixer mixer : config.layers) {
    const LayerShape layer = layer_shape(config, mixer);
    geometry.has_full |= layer.attention == Attention::full;
    geometry.has_swa |= layer.attention == Attention::swa;
    geometry.has_mamba |= layer.recurrent;
  }
  if (geometry.has_swa) geometry.window = config.window;
  if (geometry.has_mamba) geometry.state_chunk = config.state_chunk;
  return geometry;
}

Model::Model(const ModelConfig& config, std::string fingerprint, Shard shard)
    : name_(config.name),
      vocab_(config.vocab),
      fingerprint_(std::move(fingerprint)),
      shard_(shard) {
  for (const Mixer mixer : config.layers) layers_.push_back(layer_shape(config, mixer));
  geometry_ = geometry_of(config);
  for (std::uint32_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].attention == Attention::none) continue;
    const bool full = layers_[i].attention == Attention::full;
    declared_.attention_layers.push_back(LayerId{i});
    (full ? declared_.full_layers : declared_.swa_layers).push_back(LayerId{i});
  }
  declared_.kv_scale = config.state.kv_scale;
  declared_.virtual_slots = config.state.virtual_slots;
  declared_.state_dtype = config.state.state_dtype;
  declared_.extra_slot_state = config.state.extra_slot_state;
  declared_.contiguous_rows = config.state.contiguous_rows;
  declared_.geometry = geometry_;
}

template <class Visit>
void Model::visit_buffers(Component component, Tokens page, bool descending, Visit visit) const {
  const auto count = static_cast<std::uint32_t>(layers_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const LayerId layer{descending ? count - 1 - i : i};
    for (std::size_t b = 0; b < declared_.buffers.size(); ++b) {
      const DeclaredBuffer& buffer = declared_.buffers[b];
      if (buffer.component != component || buffer.layer != layer) continue;
      visit(b, buffer.part == Part::kv ? page.value() : std::int64_t{1});
    }
  }
}

RowLayout Model::layout(Component component, Tokens page, bool descending) const {
  RowLayout layout;
  layout.component = component;
  visit_buffers(component, page, descending, [&](std::size_t index, std::int64_t entries) {
    const DeclaredBuffer& buffer = declared_.buffers[index];
    const Bytes size = buffer.bytes * entries;
    layout.parts.push_back({buffer.layer, buffer.part, layout.row_bytes, size});
    layout.row_bytes += size;
  });
  return layout;
}

std::vector<ByteRange> Model::ranges_in_whole(Component component, Tokens page,
                                              bool descending) const {
  std::vector<ByteRange> ranges;
  Bytes entry_offset;
  visit_buffers(component, page, descending, [&](std::size_t index, std::int64_t entries) {
    for (std::int64_t i = 0; i < entries; ++i, entry_offset += whole_[index].bytes) {
      for (const ByteRange& range : whole_[index].ranges) {
        const Bytes offset = entry_offset + range.offset;
        if (!ranges.empty() && ranges.back().offset + ranges.back().size == offset) {
          ranges.back().size += range.size;
        } else {
          ranges.push_back({offset, range.size});
        }
      }
    }
  });
  return ranges;
}

void Model::declare(DeclaredBuffer buffer, WholeEntry whole) {
  declared_.buffers.push_back(buffer);
  whole_.push_back(std::move(whole));
}

void Model::run_heads(LayerId, const Segment&, const Memory&, std::span<const std::byte>,
                      std::span<std::byte>) const {
  CHECK("model.not_split", false);
}

void Model::combine_heads(LayerId, const Segment&, const Memory&,
                          std::span<const std::span<const std::byte>>, std::span<std::byte>) const {
  CHECK("model.not_split", false);
}

}  // namespace lockstep::model
