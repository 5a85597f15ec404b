#include "engine/parts.h"

namespace lockstep::engine {

std::unique_ptr<Executor> Parts::executor(const model::Model& model, Device& device,
                                          PoolGroup& pools, Tokens page) const {
  return std::make_unique<Executor>(model, device, pools, page);
}

}  // namespace lockstep::engine
