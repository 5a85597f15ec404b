// The copy Q <- COW source, or the clearing of Q, before the first recurrent layer of a request's
// next forward (semantics 4, steps 4 and 5).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "link/load_queue.h"
#include "link/rank.h"
#include "link/request_state.h"

namespace lockstep {

class CowPhase {
 public:
  CowPhase(const Rank& rank, LoadQueue& loads) : rank_(rank), loads_(loads) {}
  virtual ~CowPhase() = default;

  // Enqueues, on the compute stream, what must run before layer `layer` of the request's forward.
  // `loads` are the loads that may still fill the source. `layer` runs over all layers of the
  // model, ascending; `clear` sets one slot to the state of zero tokens.
  void before_layer(RequestState& request, LayerId layer, std::span<const LoadId> loads,
                    const std::function<void(std::span<std::byte>)>& clear);
  // The forward with the copy has been accepted: the source's lock ends.
  virtual void done(RequestState& request);

 protected:
  // All of the copy is on the stream: a later forward does not copy again.
  virtual void enqueued(RequestState& request);
  virtual void wait_for_source(const RequestState& request, LayerId layer,
                               std::span<const LoadId> loads);
  virtual void copy(const RequestState& request, std::span<const LayerPart> parts, bool last);
  virtual void clear_slot(const RequestState& request,
                          const std::function<void(std::span<std::byte>)>& clear);

  const Rank& rank_;

 private:
  bool barrier() const { return rank_.config.overlap == OverlapPolicy::barrier; }

  LoadQueue& loads_;
};

}  // namespace lockstep
