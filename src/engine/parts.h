// Makes the parts that the cache and the engine are put together from. A subclass replaces some of
// them: what a planted defect is.
#pragma once

#include <memory>

#include "engine/executor.h"
#include "link/parts.h"

namespace lockstep::engine {

class Parts : public LinkParts {
 public:
  virtual std::unique_ptr<Executor> executor(const model::Model& model, Device& device,
                                             PoolGroup& pools, Tokens page) const;
};

}  // namespace lockstep::engine
