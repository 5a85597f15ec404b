#include "core/layout.h"

namespace lockstep {

LayerPart RowLayout::range_of(LayerId layer) const {
  LayerPart range{layer, Part::kv, Bytes{0}, Bytes{0}};
  for (const LayerPart& part : parts) {
    if (part.layer != layer) continue;
    if (range.size == Bytes{0})
      range = part;
    else
      range.size += part.size;
  }
  return range;
}

std::vector<LayerId> RowLayout::layers() const {
  std::vector<LayerId> layers;
  for (const LayerPart& part : parts) {
    if (layers.empty() || layers.back() != part.layer) layers.push_back(part.layer);
  }
  return layers;
}

}  // namespace lockstep
