// What the bytes of a row mean. A device row and a store object's payload have the same layout: for
// each layer of the pool in the object's order, one contiguous range per part (model.md, Bytes).
#pragma once

#include <vector>

#include "core/component.h"
#include "core/ids.h"

namespace lockstep {

struct ByteRange {
  Bytes offset;
  Bytes size;
};

struct LayerPart {
  LayerId layer;
  Part part = Part::kv;
  Bytes offset;  // from the start of the row
  Bytes size;
};

struct RowLayout {
  Component component = Component::full;
  std::vector<LayerPart>
      parts;  // contiguous, without gaps, in the object's order; a slot has temporal then conv
  Bytes row_bytes;  // sum of the parts

  // The contiguous byte range of all parts of `layer`; size 0 if the pool does not hold that layer.
  LayerPart range_of(LayerId layer) const;
  // The layers that the pool holds, in the object's order, each once.
  std::vector<LayerId> layers() const;
};

}  // namespace lockstep
