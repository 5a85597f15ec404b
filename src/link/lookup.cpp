#include "link/lookup.h"

#include <algorithm>

namespace lockstep {

void LookupPhase::run(RequestState& request, std::span<const TokenId> tokens) {
  const Tokens length{static_cast<std::int64_t>(tokens.size())};
  const Geometry& geometry = rank_.geometry;
  const Pages begin = geometry.pages(request.device_hit);
  const Pages end = geometry.pages(length - Tokens{1});
  request.restorable.clear();
  if (begin < end) {
    const TailPresence tail = ask(tail_hashes(request, tokens, begin, end));
    for (Pages count : restorable(tail)) {
      request.restorable.push_back(request.device_hit + geometry.tokens(count));
    }
  }
  rank_.emit(request.id, LookedUp{request.device_hit, request.restorable});
}

std::vector<PageHash> LookupPhase::tail_hashes(const RequestState& request,
                                               std::span<const TokenId>, Pages begin,
                                               Pages end) const {
  return {request.hashes.begin() + static_cast<std::ptrdiff_t>(begin.index()),
          request.hashes.begin() + static_cast<std::ptrdiff_t>(end.index())};
}

TailPresence LookupPhase::ask(std::span<const PageHash> hashes) const {
  std::vector<ObjectKey> keys;
  const auto add = [&](Component component) {
    if (!rank_.has(component)) return;
    for (const PageHash& hash : hashes) keys.push_back(rank_.keys.object_key(hash, component));
  };
  for (Component component : kComponents) add(component);
  const std::vector<bool> there = rank_.store.exists(keys);

  TailPresence tail;
  auto next = there.begin();
  const auto take = [&](Component component, std::vector<bool>& out) {
    if (!rank_.has(component)) return;
    out.assign(next, next + static_cast<std::ptrdiff_t>(hashes.size()));
    next += static_cast<std::ptrdiff_t>(hashes.size());
  };
  take(Component::full, tail.full);
  take(Component::swa, tail.swa);
  take(Component::mamba, tail.state);
  return tail;
}

std::vector<Pages> LookupPhase::restorable(const TailPresence& tail) const {
  const std::int64_t window = rank_.geometry.window_pages().value();
  std::vector<Pages> lengths;
  std::int64_t swa_run = 0;  // consecutive SWA objects that end here
  for (std::size_t i = 0; i < tail.full.size() && tail.full[i]; ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    swa_run = !tail.swa.empty() && tail.swa[i] ? swa_run + 1 : 0;
    const bool window_is_there = !rank_.geometry.has_swa || swa_run >= std::min(window, length);
    const bool state_is_there = !rank_.geometry.has_mamba || tail.state[i];
    if (window_is_there && state_is_there) lengths.push_back(Pages{length});
  }
  return lengths;
}

}  // namespace lockstep
