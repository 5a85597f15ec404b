#include "link/roll_back.h"

#include <algorithm>

namespace lockstep {

namespace {

// The node of `endpoint`'s path that holds `page` and is still in the tree, or null.
Node* holder_of(Node& endpoint, Pages page) {
  for (Node* n = &endpoint; !n->is_root(); n = n->parent) {
    if (n->begin <= page && page < n->end()) return n->detached ? nullptr : n;
  }
  return nullptr;
}

template <class Visit>
void for_each_page(const Transfer& transfer, Visit visit) {
  for (std::size_t i = 0; i < transfer.rows.size(); ++i) {
    visit(transfer.pages.begin + Pages{static_cast<std::int64_t>(i)}, transfer.rows[i]);
  }
}

}  // namespace

Node* RollBackPhase::created(Node& endpoint, std::span<const Transfer> adopted) const {
  // FULL rows are adopted by new nodes only, and an INSERT makes one run of them.
  const auto full = std::ranges::find(adopted, Component::full, &Transfer::component);
  return full == adopted.end() ? nullptr : rank_.tree.created_by_load(endpoint, full->pages.begin);
}

std::vector<const Node*> RollBackPhase::scope(Node& endpoint,
                                              std::span<const Transfer> adopted) const {
  std::vector<const Node*> nodes;
  if (const Node* top = created(endpoint, adopted)) nodes.push_back(top);
  for (const Transfer& transfer : adopted) {
    if (transfer.component == Component::mamba) nodes.push_back(&endpoint);
    if (transfer.component != Component::swa) continue;
    for_each_page(transfer, [&](Pages page, Row) {
      if (const Node* holder = holder_of(endpoint, page)) nodes.push_back(holder);
    });
  }
  return nodes;
}

std::vector<TornRows> RollBackPhase::run(Node& endpoint, std::span<const Transfer> adopted) {
  std::vector<TornRows> torn;
  if (Node* top = created(endpoint, adopted)) rank_.tree.detach(*top, torn);
  for (const Transfer& transfer : adopted) {
    if (transfer.component == Component::mamba && !endpoint.detached &&
        endpoint.state == transfer.rows.front()) {
      rank_.tree.tear_state(endpoint, torn);
    }
    if (transfer.component != Component::swa) continue;
    for_each_page(transfer, [&](Pages page, Row row) {
      Node* holder = holder_of(endpoint, page);
      if (holder != nullptr && holder->swa[holder->offset(page)] == row) {
        rank_.tree.tear_swa(*holder, page, torn);
      }
    });
  }
  return torn;
}

}  // namespace lockstep
