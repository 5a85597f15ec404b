#include "link/match.h"

#include <algorithm>

namespace lockstep {

void MatchPhase::run(RequestState& request, Tokens length, bool query_store) {
  request.lock.release();
  const Geometry& geometry = rank_.geometry;
  const TreePath path = rank_.tree.walk(request.namespace_hash, request.hashes);
  const Pages hit = deepest_hit(path, geometry.pages(limit(request, length)));

  request.device_hit = geometry.tokens(hit);
  request.full_matched = geometry.tokens(path.matched);
  request.deepest_state = Tokens{0};
  for (const Node* node : path.nodes) {
    if (node->has_state() && node->end() <= path.matched) {
      request.deepest_state = geometry.tokens(node->end());
    }
  }
  request.node = nullptr;
  request.restorable.clear();
  if (hit > Pages{0}) {
    request.node = &rank_.tree.node_at(path, hit);
    request.lock = lock_hit(request.id, *request.node);
    rank_.tree.touch_hit(*request.node);
  }
  const NodeId node = request.node == nullptr ? path.root->id : request.node->id;
  rank_.emit(request.id, Matched{request.device_hit, request.full_matched, node, query_store});
}

Tokens MatchPhase::limit(const RequestState&, Tokens length) const {
  return length - Tokens{1};
}

LockTicket MatchPhase::lock_hit(RequestId request, Node& node) const {
  return rank_.tree.lock(request, node, LockHolder::request, rank_.tree.window_of(node));
}

Pages MatchPhase::window_needed() const {
  return rank_.geometry.window_pages();
}

Pages MatchPhase::deepest_hit(const TreePath& path, Pages limit) const {
  const Geometry& geometry = rank_.geometry;
  const std::vector<bool> swa = geometry.has_swa ? swa_present(path) : std::vector<bool>{};
  const auto window_is_there = [&](Pages end) {
    for (Pages page = std::max(Pages{0}, end - window_needed()); page < end; ++page) {
      if (geometry.has_swa && !swa[page.index()]) return false;
    }
    return true;
  };
  if (!geometry.has_mamba) {
    Pages end = std::min(path.matched, limit);
    while (end > Pages{0} && !window_is_there(end)) end -= Pages{1};
    return end;
  }
  for (auto node = path.nodes.rbegin(); node != path.nodes.rend(); ++node) {
    const Pages end = (*node)->end();
    if (end <= path.matched && end <= limit && (*node)->has_state() && window_is_there(end)) {
      return end;
    }
  }
  return Pages{0};
}

std::vector<bool> MatchPhase::swa_present(const TreePath& path) const {
  std::vector<bool> present;
  for (const Node* node : path.nodes) {
    for (Row row : node->swa) present.push_back(row != kTrapRow);
  }
  return present;
}

}  // namespace lockstep
