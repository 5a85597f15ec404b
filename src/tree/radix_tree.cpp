#include "tree/radix_tree.h"

#include <algorithm>

#include "core/check.h"

namespace lockstep {

namespace {

void extend(std::vector<PageRange>& ranges, Pages page) {
  if (!ranges.empty() && ranges.back().end == page) {
    ++ranges.back().end;
  } else {
    ranges.push_back({page, page + Pages{1}});
  }
}

Pages common_prefix(const Node& node, std::span<const PageHash> hashes) {
  const std::size_t limit = std::min(node.hashes.size(), hashes.size());
  std::size_t i = 0;
  while (i < limit && node.hashes[i] == hashes[i]) ++i;
  return Pages{static_cast<std::int64_t>(i)};
}

}  // namespace

RadixTree::RadixTree(const Geometry& geometry, PoolGroup& pools, EventSink& sink, RankId rank,
                     std::unique_ptr<EvictionPolicy> eviction,
                     std::unique_ptr<NodeSplitter> splitter)
    : geometry_(geometry),
      pools_(pools),
      sink_(sink),
      rank_(rank),
      eviction_(std::move(eviction)),
      splitter_(std::move(splitter)) {}

RadixTree::~RadixTree() = default;

Node& RadixTree::root(const PageHash& namespace_hash) {
  std::unique_ptr<Node>& root = roots_[namespace_hash];
  if (!root) {
    root = std::make_unique<Node>();
    root->id = NodeId{next_node_++};
    root->namespace_hash = namespace_hash;
    by_id_[root->id] = root.get();
  }
  return *root;
}

TreePath RadixTree::walk(const PageHash& namespace_hash, std::span<const PageHash> hashes) {
  TreePath path;
  path.root = &root(namespace_hash);
  Node* node = path.root;
  while (path.matched.index() < hashes.size()) {
    const auto child = node->children.find(hashes[path.matched.index()]);
    if (child == node->children.end()) break;
    node = child->second.get();
    path.nodes.push_back(node);
    const Pages common = common_prefix(*node, hashes.subspan(path.matched.index()));
    path.matched += common;
    if (common < node->size()) break;
  }
  return path;
}

Node* RadixTree::node_ending_at(const TreePath& path, Pages at) const {
  for (Node* node : path.nodes) {
    if (node->end() == at && at <= path.matched) return node;
  }
  return nullptr;
}

Node& RadixTree::node_at(const TreePath& path, Pages at) {
  CHECK("tree.node_at", at > Pages{0} && at <= path.matched);
  for (Node* node : path.nodes) {
    if (node->end() < at) continue;
    return node->end() == at ? *node : split_at(*node, at - node->begin);
  }
  fail_contract("tree.node_at", "the path reaches the boundary", __FILE__, __LINE__);
}

Node& RadixTree::split_at(Node& lower, Pages count) {
  Node* parent = lower.parent;
  const PageHash first = lower.hashes.front();
  std::unique_ptr<Node> owned_lower = std::move(parent->children.at(first));
  auto owned_upper = std::make_unique<Node>();
  Node& upper = *owned_upper;
  upper.id = NodeId{next_node_++};
  upper.parent = parent;
  splitter_->divide(upper, lower, count);
  by_id_[upper.id] = &upper;
  lower.parent = &upper;
  upper.children.emplace(lower.hashes.front(), std::move(owned_lower));
  parent->children.at(first) = std::move(owned_upper);
  emit(NodeSplit{upper.id, lower.id, upper.end()});
  eviction_->refresh(upper);
  eviction_->refresh(lower);
  return upper;
}

InsertOutcome RadixTree::insert(const PageHash& namespace_hash, const IncomingRows& incoming,
                                std::optional<LoadId> load) {
  InsertOutcome outcome;
  const Pages end{static_cast<std::int64_t>(incoming.hashes.size())};
  CHECK("tree.insert.not_empty", end > Pages{0});
  ++clock_;
  Node* node = &root(namespace_hash);
  Pages at{0};
  while (at < end) {
    const auto child = node->children.find(incoming.hashes[at.index()]);
    if (child == node->children.end()) {
      node = &add_child(*node, incoming, at, end, load, outcome);
      break;
    }
    Node* next = child->second.get();
    const Pages common = common_prefix(*next, incoming.hashes.subspan(at.index()));
    if (common < next->size()) next = &split_at(*next, common);
    merge(*next, incoming, load, outcome);
    node = next;
    at += common;
  }
  outcome.node = node;
  place_state(*node, incoming, load, outcome);
  eviction_->refresh(*node);
  return outcome;
}

Node& RadixTree::add_child(Node& parent, const IncomingRows& incoming, Pages begin, Pages end,
                           std::optional<LoadId> load, InsertOutcome& outcome) {
  auto owned = std::make_unique<Node>();
  Node& node = *owned;
  node.id = NodeId{next_node_++};
  node.parent = &parent;
  node.namespace_hash = parent.namespace_hash;
  node.begin = begin;
  const std::size_t size = (end - begin).index();
  node.hashes.assign(incoming.hashes.begin() + static_cast<std::ptrdiff_t>(begin.index()),
                     incoming.hashes.begin() + static_cast<std::ptrdiff_t>(end.index()));
  node.full.assign(size, kTrapRow);
  if (geometry_.has_swa) {
    node.swa.assign(size, kTrapRow);
    node.swa_locks.assign(size, 0);
    node.swa_stored.assign(size, 0);
    node.swa_pending.assign(size, 0);
  }
  node.used.fill(clock_);
  by_id_[node.id] = &node;
  emit(NodeCreated{node.id, parent.id, begin, end});
  merge(node, incoming, load, outcome);
  parent.children.emplace(node.hashes.front(), std::move(owned));
  eviction_->refresh(parent);
  return node;
}

void RadixTree::merge(Node& node, const IncomingRows& incoming, std::optional<LoadId> load,
                      InsertOutcome& outcome) {
  const auto adopt = [&](Component component, std::vector<Row>& rows, std::size_t i, Row row,
                         std::vector<PageRange>& ranges, std::vector<Row>& adopted) {
    rows[i] = row;
    extend(ranges, node.begin + Pages{static_cast<std::int64_t>(i)});
    adopted.push_back(row);
    node.used[index(component)] = eviction_->stamp(clock_);
  };
  bool filling = false;
  for (std::size_t i = 0; i < node.hashes.size(); ++i) {
    const Pages page = node.begin + Pages{static_cast<std::int64_t>(i)};
    if (page >= incoming.full_from) {
      const Row row = incoming.full[(page - incoming.full_from).index()];
      if (node.full[i] == kTrapRow) {
        adopt(Component::full, node.full, i, row, outcome.full_adopted, outcome.full_adopted_rows);
        filling = true;
      } else {
        extend(outcome.full_duplicate, page);
        outcome.full_duplicate_rows.push_back(row);
      }
    }
    if (!geometry_.has_swa || page < incoming.swa_from) continue;
    const Row row = incoming.swa[(page - incoming.swa_from).index()];
    if (node.swa[i] == kTrapRow) {
      adopt(Component::swa, node.swa, i, row, outcome.swa_adopted, outcome.swa_adopted_rows);
      filling = true;
    } else {
      extend(outcome.swa_duplicate, page);
      outcome.swa_duplicate_rows.push_back(row);
    }
  }
  if (filling && load) node.loading.push_back(*load);
  eviction_->refresh(node);
}

void RadixTree::place_state(Node& node, const IncomingRows& incoming, std::optional<LoadId> load,
                            InsertOutcome& outcome) {
  if (incoming.state == kTrapRow) return;
  if (node.has_state()) {
    outcome.mamba_exist = true;
    return;
  }
  node.state = incoming.state;
  node.used[index(Component::mamba)] = eviction_->stamp(clock_);
  outcome.state_adopted = true;
  if (load && std::ranges::find(node.loading, *load) == node.loading.end()) {
    node.loading.push_back(*load);
  }
}

void RadixTree::free_duplicates(const InsertOutcome& outcome) {
  if (!outcome.full_duplicate_rows.empty()) {
    pools_.pool(Component::full).release(outcome.full_duplicate_rows);
  }
  if (!outcome.swa_duplicate_rows.empty()) {
    pools_.pool(Component::swa).release(outcome.swa_duplicate_rows);
  }
}

PageRange RadixTree::window_of(const Node& node) const {
  return {std::max(Pages{0}, node.end() - geometry_.window_pages()), node.end()};
}

LockTicket RadixTree::lock(RequestId request, Node& node, LockHolder holder, PageRange swa) {
  if (!geometry_.has_swa) swa = {node.end(), node.end()};
  // A state goes with its window: whoever keeps the one keeps the other.
  if (node.has_state()) swa.begin = std::min(swa.begin, window_of(node).begin);
  const LockCover cover{LockId{next_lock_++}, &node, swa, node.has_state()};
  if (cover.mamba) ++node.state_locks;
  for (Node* n = &node; n != nullptr; n = n->parent) {
    ++n->full_locks;
    for (Pages page = std::max(swa.begin, n->begin); page < std::min(swa.end, n->end()); ++page) {
      ++n->swa_locks[n->offset(page)];
    }
    eviction_->refresh(*n);
  }
  sink_.emit(rank_, request, LockTaken{cover.id, holder, node.id, swa, cover.mamba});
  return LockTicket(cover, *this);
}

void RadixTree::release(const LockCover& cover) {
  emit(LockReleased{cover.id});
  if (cover.mamba) --cover.node->state_locks;
  for (Node* n = cover.node; n != nullptr; n = n->parent) {
    --n->full_locks;
    const PageRange& swa = cover.swa;
    for (Pages page = std::max(swa.begin, n->begin); page < std::min(swa.end, n->end()); ++page) {
      --n->swa_locks[n->offset(page)];
    }
    if (!n->detached) eviction_->refresh(*n);
  }
  Node* attached = cover.node;
  while (attached->detached && attached->parent != nullptr) attached = attached->parent;
  const bool in_tree = !attached->detached;
  if (cover.node->detached) drop_unlocked_detached();
  if (in_tree) prune(attached);
}

void RadixTree::drop_unlocked_detached() {
  // A ticket anywhere below counts at the top.
  std::erase_if(detached_, [](const std::unique_ptr<Node>& top) { return top->full_locks == 0; });
}

void RadixTree::touch_hit(Node& node) {
  const std::uint64_t now = tick();
  const Pages window_begin = window_of(node).begin;
  node.used[index(Component::mamba)] = now;
  for (Node* n = &node; !n->is_root(); n = n->parent) {
    n->used[index(Component::full)] = now;
    if (n->end() > window_begin) n->used[index(Component::swa)] = now;
    eviction_->refresh(*n);
  }
}

Rows RadixTree::evictable(Component component) const {
  std::int64_t rows = 0;
  for (const auto& [id, node] : by_id_) {
    if (node->is_root()) continue;
    switch (component) {
      case Component::full:
        if (node->full_locks == 0) rows += node->size().value();
        break;
      case Component::swa:
        for (std::size_t i = 0; i < node->swa.size(); ++i) {
          rows += node->swa[i] != kTrapRow && node->swa_locks[i] == 0;
        }
        break;
      case Component::mamba:
        rows += node->has_state() && node->state_locks == 0;
        break;
    }
  }
  return Rows{rows};
}

Rows RadixTree::evict(Component component, Rows shortfall, EvictionCause cause) {
  Rows freed{0};
  while (freed < shortfall) {
    Node* victim = eviction_->victim(component);
    if (victim == nullptr) break;
    freed += evict_from(*victim, component, cause);
  }
  return freed;
}

Rows RadixTree::evict_from(Node& node, Component component, EvictionCause cause) {
  const RowPool& pool = pools_.pool(component);
  const Rows before = pool.free();
  switch (component) {
    case Component::full:
      remove_leaf(node, cause);
      break;
    case Component::swa:
      drop_swa(node, cause);
      break;
    case Component::mamba:
      // A leaf goes whole; an inner node, or a leaf that somebody still reads, loses its state
      // only.
      if (eviction_->may_evict(node, Component::full)) {
        remove_leaf(node, cause);
      } else {
        drop_state(node, cause);
      }
      break;
  }
  return pool.free() - before;
}

void RadixTree::drop_state(Node& node, EvictionCause cause) {
  const Row state = std::exchange(node.state, kTrapRow);
  report_evicted(node, Component::mamba, {node.end(), node.end()}, {&state, 1}, cause);
  node.state_stored = false;
  eviction_->refresh(node);
  prune(&node);
}

void RadixTree::drop_swa(Node& node, EvictionCause cause) {
  std::vector<PageRange> ranges;
  for (std::size_t i = 0; i < node.swa.size(); ++i) {
    if (node.swa[i] == kTrapRow || !eviction_->may_evict_page(node, i)) continue;
    extend(ranges, node.begin + Pages{static_cast<std::int64_t>(i)});
  }
  for (const PageRange& range : ranges) {
    std::vector<Row> rows;
    for (Pages page = range.begin; page < range.end; ++page) {
      rows.push_back(std::exchange(node.swa[node.offset(page)], kTrapRow));
      node.swa_stored[node.offset(page)] = 0;
    }
    report_evicted(node, Component::swa, range, rows, cause);
  }
  eviction_->refresh(node);
  if (!ranges.empty()) drop_stranded_states(node, ranges);
}

std::vector<Node*> RadixTree::stranded_below(Node& node, const std::vector<PageRange>& lost) const {
  std::vector<Node*> reached{&node};
  std::vector<Node*> stranded;
  while (!reached.empty()) {
    Node* n = reached.back();
    reached.pop_back();
    const PageRange window = window_of(*n);
    const bool holed = std::ranges::any_of(lost, [&](const PageRange& range) {
      return range.begin < window.end && window.begin < range.end;
    });
    if (holed && n->has_state()) stranded.push_back(n);
    // Below a node whose end is a whole window past the last lost page, no window reaches back.
    if (n->end() - lost.back().end >= geometry_.window_pages()) continue;
    for (const auto& [hash, child] : n->children) reached.push_back(child.get());
  }
  return stranded;
}

void RadixTree::drop_stranded_states(Node& node, const std::vector<PageRange>& lost) {
  std::vector<NodeId> stranded;
  for (const Node* n : stranded_below(node, lost)) stranded.push_back(n->id);
  for (NodeId id : stranded) {
    // Dropping one may have pruned another.
    Node* n = find(id);
    if (n != nullptr && n->has_state() && eviction_->loses_state(*n))
      drop_state(*n, EvictionCause::cascade);
  }
}

Node* RadixTree::created_by_load(Node& endpoint, Pages first_page) const {
  for (Node* n = &endpoint; !n->is_root() && !n->detached; n = n->parent) {
    if (n->begin == first_page) return n;
  }
  return nullptr;
}

void RadixTree::detach(Node& top, std::vector<TornRows>& torn) {
  Node* parent = top.parent;
  const auto place = parent->children.find(top.hashes.front());
  detached_.push_back(std::move(place->second));
  parent->children.erase(place);
  std::vector<Node*> below{&top};
  while (!below.empty()) {
    Node* node = below.back();
    below.pop_back();
    tear_node(*node, torn);
    for (const auto& [hash, child] : node->children) below.push_back(child.get());
  }
  eviction_->refresh(*parent);
  drop_unlocked_detached();
  prune(parent);
}

void RadixTree::tear_node(Node& node, std::vector<TornRows>& torn) {
  if (node.has_state()) {
    report_torn(node, Component::mamba, {node.end(), node.end()},
                {std::exchange(node.state, kTrapRow)}, torn);
  }
  for (std::size_t i = 0; i < node.swa.size(); ++i) {
    if (node.swa[i] == kTrapRow) continue;
    const Pages page = node.begin + Pages{static_cast<std::int64_t>(i)};
    report_torn(node, Component::swa, {page, page + Pages{1}},
                {std::exchange(node.swa[i], kTrapRow)}, torn);
  }
  report_torn(node, Component::full, {node.begin, node.end()}, node.full, torn);
  std::ranges::fill(node.full, kTrapRow);
  emit(NodeRemoved{node.id});
  eviction_->forget(node);
  by_id_.erase(node.id);
  node.detached = true;
}

void RadixTree::tear_swa(Node& node, Pages page, std::vector<TornRows>& torn) {
  const std::size_t i = node.offset(page);
  node.swa_stored[i] = 0;
  report_torn(node, Component::swa, {page, page + Pages{1}}, {std::exchange(node.swa[i], kTrapRow)},
              torn);
  for (Node* stranded : stranded_below(node, {{page, page + Pages{1}}})) {
    tear_state(*stranded, torn);
  }
  eviction_->refresh(node);
}

void RadixTree::tear_state(Node& node, std::vector<TornRows>& torn) {
  node.state_stored = false;
  report_torn(node, Component::mamba, {node.end(), node.end()},
              {std::exchange(node.state, kTrapRow)}, torn);
  eviction_->refresh(node);
  prune(&node);
}

void RadixTree::report_torn(const Node& node, Component component, PageRange pages,
                            std::vector<Row> rows, std::vector<TornRows>& torn) {
  emit(Evicted{node.id, component, pages, rows, EvictionCause::roll_back});
  torn.push_back({component, std::move(rows)});
}

void RadixTree::remove_leaf(Node& node, EvictionCause cause) {
  Node* parent = node.parent;
  take_out(node, cause);
  prune(parent);
}

void RadixTree::take_out(Node& node, EvictionCause cause) {
  if (node.has_state()) {
    const Row state = std::exchange(node.state, kTrapRow);
    report_evicted(node, Component::mamba, {node.end(), node.end()}, {&state, 1}, cause);
  }
  for (std::size_t i = 0; i < node.swa.size(); ++i) {
    if (node.swa[i] == kTrapRow) continue;
    const Pages page = node.begin + Pages{static_cast<std::int64_t>(i)};
    report_evicted(node, Component::swa, {page, page + Pages{1}}, {&node.swa[i], 1}, cause);
  }
  report_evicted(node, Component::full, {node.begin, node.end()}, node.full, cause);
  emit(NodeRemoved{node.id});
  eviction_->forget(node);
  by_id_.erase(node.id);
  Node* parent = node.parent;
  const auto place = parent->children.find(node.hashes.front());
  std::unique_ptr<Node> owned = std::move(place->second);
  parent->children.erase(place);
  // Tickets keep the node, not the rows.
  node.detached = true;
  if (node.full_locks > 0) detached_.push_back(std::move(owned));
  eviction_->refresh(*parent);
}

void RadixTree::prune(Node* node) {
  // Without recurrent layers every page counts as having a state, so nothing is ever stranded.
  if (!geometry_.has_mamba) return;
  while (!node->is_root() && node->children.empty() && !node->has_state() &&
         node->full_locks == 0) {
    Node* parent = node->parent;
    take_out(*node, EvictionCause::cascade);
    node = parent;
  }
}

void RadixTree::report_evicted(const Node& node, Component component, PageRange pages,
                               std::span<const Row> rows, EvictionCause cause) {
  emit(Evicted{node.id, component, pages, rows, cause});
  pools_.pool(component).release(rows);
}

void RadixTree::clear() {
  for (auto& [hash, root] : roots_) clear_below(*root);
  for (auto& [hash, root] : roots_) by_id_.erase(root->id);
  for (auto& [hash, root] : roots_) {
    root->detached = true;
    if (root->full_locks > 0) detached_.push_back(std::move(root));
  }
  roots_.clear();
}

void RadixTree::clear_below(Node& node) {
  while (!node.children.empty()) {
    Node& child = *node.children.begin()->second;
    clear_below(child);
    take_out(child, EvictionCause::flush);
  }
}

void RadixTree::loaded(Node& endpoint, LoadId load) {
  for (Node* n = &endpoint; n != nullptr; n = n->parent) std::erase(n->loading, load);
}

void RadixTree::for_each_node(const std::function<void(Node&)>& visit) const {
  std::vector<Node*> pending;
  for (const auto& [hash, root] : roots_) pending.push_back(root.get());
  while (!pending.empty()) {
    Node* node = pending.back();
    pending.pop_back();
    visit(*node);
    for (const auto& [hash, child] : node->children) pending.push_back(child.get());
  }
}

Node* RadixTree::find(NodeId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

}  // namespace lockstep
