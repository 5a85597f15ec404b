// What two implementations of a numeric decoder share: its configuration and its weights.
#pragma once

#include "model/config.h"
#include "model/weights.h"

namespace lockstep::model {

struct Numbers {
  ModelConfig config;
  Weights weights;
};

}  // namespace lockstep::model
