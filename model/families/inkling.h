// The language model of Inkling, alone: "inkling_text".
#pragma once

#include "model/families/common.h"

namespace lockstep::model {

Result<void> read_inkling(JsonFields& fields, TensorReader& tensors, Checkpoint& checkpoint);

}  // namespace lockstep::model
