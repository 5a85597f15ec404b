#include "oracle/rank_ledger.h"

#include <algorithm>

#include "core/random.h"

namespace lockstep::oracle {

std::string_view name(RowOwner owner) {
  constexpr std::array<std::string_view, 6> names{"free",           "a request",
                                                  "the tree",       "nobody: it left the tree",
                                                  "the quarantine", "nobody: it left the pool"};
  return names[static_cast<std::size_t>(owner)];
}

RankLedger::RankLedger(const ContentTable& contents, const RequestBook& requests,
                       const Inspector& inspector)
    : contents_(contents), requests_(requests) {
  for (Component component : kComponents) {
    if (!inspector.has(component)) continue;
    free_rows_[index(component)] = inspector.capacity(component);
    rows_[index(component)].resize(inspector.capacity(component).index() + 1);
  }
}

void RankLedger::apply(const Event& event) {
  std::visit([&](const auto& body) { on(event, body); }, event.body);
}

const RowRecord& RankLedger::row(Component component, Row row) const {
  static const RowRecord unknown;
  const std::vector<RowRecord>& rows = rows_[index(component)];
  return row.index() < rows.size() ? rows[row.index()] : unknown;
}

Row RankLedger::tree_row(Component component, ContentId content) const {
  return content.index() < tree_.size() ? tree_[content.index()].rows[index(component)] : kTrapRow;
}

const LedgerNode* RankLedger::node(NodeId id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() || found->second.removed ? nullptr : &found->second;
}

std::int64_t RankLedger::swa_locks(ContentId content) const {
  return content.index() < swa_locks_.size() ? swa_locks_[content.index()] : 0;
}

bool RankLedger::is_state_locked(ContentId content) const {
  return std::any_of(locks_.begin(), locks_.end(), [&](const auto& entry) {
    return entry.second.mamba && entry.second.tip == content;
  });
}

Rows RankLedger::evictable_rows(Component component) const {
  Rows evictable{0};
  for (const auto& [id, node] : nodes_) {
    if (node.removed || node.is_root || node.tip == kNoContent) continue;
    if (component == Component::full) {
      if (node.full_locks == 0) evictable += Rows{(node.end - node.begin).value()};
    } else if (component == Component::mamba) {
      if (node.state_locks == 0 && tree_row(component, node.tip) != kTrapRow) ++evictable;
    } else {
      ContentId content = node.tip;
      for (Pages page = node.end; page > node.begin;
           page -= Pages{1}, content = contents_.parent(content)) {
        if (swa_locks(content) == 0 && tree_row(component, content) != kTrapRow) ++evictable;
      }
    }
  }
  return evictable;
}

// ---------------------------------------------------------------- rows

RowRecord* RankLedger::find_row(Component component, Row row) {
  std::vector<RowRecord>& rows = rows_[index(component)];
  return row != kTrapRow && row.index() < rows.size() ? &rows[row.index()] : nullptr;
}

void RankLedger::set_owner(Component component, Row row, RowOwner owner, RequestId request) {
  RowRecord* record = find_row(component, row);
  if (record == nullptr) return;
  if (record->owner == RowOwner::free) free_rows_[index(component)] -= Rows{1};
  if (owner == RowOwner::free) ++free_rows_[index(component)];
  if (record->owner == RowOwner::tree && tree_row(component, record->content) == row) {
    set_tree_row(component, record->content, kTrapRow);
  }
  record->owner = owner;
  record->request = request;
  if (owner == RowOwner::free || owner == RowOwner::request) {
    record->content = kNoContent;
    record->depth = Tokens{0};
  }
}

void RankLedger::place(Component component, ContentId content, Row row) {
  RowRecord* record = find_row(component, row);
  if (record == nullptr || content == kNoContent) return;
  set_owner(component, row, RowOwner::tree, kNoRequest);
  record->content = content;
  set_tree_row(component, content, row);
}

void RankLedger::set_tree_row(Component component, ContentId content, Row row) {
  if (content.index() >= tree_.size()) tree_.resize(content.index() + 1);
  Row& kept = tree_[content.index()].rows[index(component)];
  if ((kept == kTrapRow) != (row == kTrapRow)) {
    const std::uint64_t what = std::uint64_t{content.value()} << 2 | index(component);
    holdings_digest_ ^= SplitMix64(what).next();
  }
  kept = row;
}

void RankLedger::on(const Event& event, const RowsAllocated& allocated) {
  ++allocations_;
  for (Row row : allocated.rows) {
    set_owner(allocated.component, row, RowOwner::request, event.request);
    if (RowRecord* record = find_row(allocated.component, row)) record->taken = allocations_;
  }
}

void RankLedger::on(const Event&, const RowsFreed& freed) {
  for (Row row : freed.rows) set_owner(freed.component, row, RowOwner::free, kNoRequest);
}

void RankLedger::on(const Event&, const RowsWithdrawn& withdrawn) {
  for (Row row : withdrawn.rows) {
    set_owner(withdrawn.component, row, RowOwner::withdrawn, kNoRequest);
  }
}

void RankLedger::on(const Event&, const ForwardAccepted& accepted) {
  for (const SegmentView& segment : accepted.segments) {
    for (const SnapshotView& snapshot : segment.snapshots) {
      RowRecord* slot = find_row(Component::mamba, snapshot.slot);
      if (slot != nullptr) slot->depth = snapshot.depth;
    }
  }
}

// ---------------------------------------------------------------- tree

void RankLedger::on(const Event& event, const Inserted& inserted) {
  const RequestRecord* request = requests_.find(event.request);
  if (request == nullptr) return;
  name_new_nodes(*request);
  place_ranges(Component::full, *request, inserted.full_adopted, inserted.full_adopted_rows);
  place_ranges(Component::swa, *request, inserted.swa_adopted, inserted.swa_adopted_rows);
  RowRecord* slot = find_row(Component::mamba, inserted.state);
  if (slot == nullptr || inserted.mamba_exist) return;
  if (inserted.cause == InsertCause::load) slot->depth = inserted.end;
  place(Component::mamba, requests_.content_at(*request, inserted.end), inserted.state);
}

void RankLedger::place_ranges(Component component, const RequestRecord& request,
                              std::span<const PageRange> ranges, std::span<const Row> rows) {
  std::size_t next = 0;
  for (const PageRange& range : ranges) {
    for (Pages page = range.begin; page < range.end && next < rows.size(); ++page, ++next) {
      if (page.index() < request.chain.size())
        place(component, request.chain[page.index()], rows[next]);
    }
  }
}

void RankLedger::name_new_nodes(const RequestRecord& request) {
  for (NodeId id : unnamed_nodes_) {
    const auto found = nodes_.find(id);
    if (found == nodes_.end()) continue;
    found->second.tip =
        requests_.content_at(request, requests_.geometry().tokens(found->second.end));
  }
  unnamed_nodes_.clear();
}

// Roots are not announced: the first node or lock that names one makes it known.
LedgerNode& RankLedger::node_or_root(NodeId id) {
  const auto [entry, is_new] = nodes_.try_emplace(id);
  if (is_new) {
    entry->second.parent = id;
    entry->second.is_root = true;
  }
  return entry->second;
}

void RankLedger::on(const Event&, const NodeCreated& created) {
  node_or_root(created.parent);
  LedgerNode node;
  node.parent = created.parent;
  node.begin = created.begin;
  node.end = created.end;
  nodes_[created.node] = node;
  unnamed_nodes_.push_back(created.node);
}

void RankLedger::on(const Event&, const NodeSplit& split) {
  LedgerNode& lower = node_or_root(split.lower);
  LedgerNode upper = lower;
  upper.end = split.at;
  upper.state_locks = 0;
  if (lower.tip != kNoContent && contents_.pages(lower.tip) >= split.at) {
    upper.tip = contents_.prefix(lower.tip, split.at);
  } else {
    unnamed_nodes_.push_back(split.upper);
  }
  lower.begin = split.at;
  lower.parent = split.upper;
  nodes_[split.upper] = upper;
}

void RankLedger::on(const Event&, const NodeRemoved& removed) {
  const auto found = nodes_.find(removed.node);
  if (found == nodes_.end()) return;
  uncover(removed.node, found->second.begin);
  if (found->second.full_locks == 0)
    nodes_.erase(found);
  else
    found->second.removed = true;
}

// Another node may come to hold the same content: tickets on a removed one do not cover that.
void RankLedger::uncover(NodeId removed, Pages begin) {
  for (auto& [id, lock] : locks_) {
    if (lock.swa.end <= begin || !is_on_path(removed, lock.node)) continue;
    const PageRange gone{std::max(lock.swa.begin, begin), lock.swa.end};
    count_swa_locks(lock.tip, gone, -1);
    lock.swa.end = gone.begin;
  }
}

bool RankLedger::is_on_path(NodeId id, NodeId end) const {
  for (auto found = nodes_.find(end); found != nodes_.end();
       found = nodes_.find(found->second.parent)) {
    if (found->first == id) return true;
    if (found->second.is_root) break;
  }
  return false;
}

void RankLedger::on(const Event&, const Evicted& evicted) {
  const RowOwner owner =
      evicted.cause == EvictionCause::roll_back ? RowOwner::quarantined : RowOwner::leaving;
  for (Row row : evicted.rows) set_owner(evicted.component, row, owner, kNoRequest);
  const auto found = nodes_.find(evicted.node);
  if (found == nodes_.end()) return;
  found->second.rolled_back |= evicted.cause == EvictionCause::roll_back;
}

void RankLedger::on(const Event&, const StoredFlagSet& flagged) {
  if (flagged.component == Component::full) node_or_root(flagged.node).full_stored = true;
}

// ---------------------------------------------------------------- locks

void RankLedger::on(const Event& event, const LockTaken& taken) {
  LedgerNode& node = node_or_root(taken.node);
  if (node.tip == kNoContent && !node.is_root) {
    if (const RequestRecord* request = requests_.find(event.request)) {
      node.tip = requests_.content_at(*request, requests_.geometry().tokens(node.end));
    }
  }
  const LockRecord lock{taken.holder, event.request, taken.node, node.tip, taken.swa, taken.mamba};
  locks_[taken.lock] = lock;
  count_lock(lock, 1);
}

void RankLedger::on(const Event&, const LockReleased& released) {
  const auto found = locks_.find(released.lock);
  if (found == locks_.end()) return;
  // Whoever starts again because of a failed load gives up a copy that has not run.
  if (found->second.holder == LockHolder::copy) drop_copy(found->second.request);
  count_lock(found->second, -1);
  locks_.erase(found);
}

void RankLedger::count_lock(const LockRecord& lock, std::int64_t change) {
  NodeId id = lock.node;
  for (auto found = nodes_.find(id); found != nodes_.end(); found = nodes_.find(id)) {
    LedgerNode& node = found->second;
    const bool is_root = node.is_root;
    id = node.parent;
    node.full_locks += change;
    if (found->first == lock.node && lock.mamba) node.state_locks += change;
    if (node.removed && node.full_locks == 0) nodes_.erase(found);
    if (is_root) break;
  }
  count_swa_locks(lock.tip, lock.swa, change);
}

void RankLedger::count_swa_locks(ContentId tip, PageRange pages, std::int64_t change) {
  if (tip == kNoContent || pages.empty() || contents_.pages(tip) < pages.end) return;
  ContentId content = contents_.prefix(tip, pages.end);
  for (Pages page = pages.end; page > pages.begin; page -= Pages{1}) {
    if (content.index() >= swa_locks_.size()) swa_locks_.resize(content.index() + 1);
    swa_locks_[content.index()] += static_cast<std::int32_t>(change);
    content = contents_.parent(content);
  }
}

// ---------------------------------------------------------------- transfers and copies

void RankLedger::refer(Component component, Row row, std::int64_t change) {
  if (RowRecord* record = find_row(component, row)) record->references += change;
}

void RankLedger::refer(const TransferRecord& transfer, std::int64_t change) {
  for (const TransferPart& part : transfer.parts) {
    for (Row row : part.rows) refer(part.component, row, change);
  }
}

TransferPart RankLedger::part_of(const TransferView& view, ContentId tip) const {
  TransferPart part{view.component, view.pages, {view.rows.begin(), view.rows.end()}, {}};
  part.contents.resize(view.rows.size(), kNoContent);
  const Pages end = view.pages.begin + Pages{static_cast<std::int64_t>(view.rows.size())};
  if (tip == kNoContent || end > contents_.pages(tip)) return part;
  ContentId content = contents_.prefix(tip, end);
  for (auto entry = part.contents.rbegin(); entry != part.contents.rend(); ++entry) {
    *entry = content;
    content = contents_.parent(content);
  }
  return part;
}

void RankLedger::on(const Event& event, const LoadQueued& queued) {
  TransferRecord load;
  load.request = event.request;
  load.boundary = queued.boundary;
  const RequestRecord* request = requests_.find(event.request);
  const ContentId tip =
      request == nullptr ? kNoContent : requests_.content_at(*request, queued.boundary);
  for (const TransferView& view : queued.transfers) load.parts.push_back(part_of(view, tip));
  refer(load, 1);
  loads_[queued.load] = std::move(load);
}

void RankLedger::on(const Event&, const LoadFinished& finished) {
  const auto found = loads_.find(finished.load);
  if (found == loads_.end()) return;
  refer(found->second, -1);
  loads_.erase(found);
}

void RankLedger::on(const Event&, const OffloadQueued& queued) {
  TransferRecord offload;
  offload.node = queued.node;
  const LedgerNode* owner = node(queued.node);
  const ContentId tip = owner == nullptr ? kNoContent : owner->tip;
  for (const TransferView& view : queued.transfers) offload.parts.push_back(part_of(view, tip));
  refer(offload, 1);
  offloads_[queued.offload] = std::move(offload);
}

void RankLedger::on(const Event&, const OffloadFinished& finished) {
  const auto found = offloads_.find(finished.offload);
  if (found == offloads_.end()) return;
  refer(found->second, -1);
  offloads_.erase(found);
}

void RankLedger::on(const Event& event, const Committed& committed) {
  drop_copy(event.request);
  if (committed.boundary == Tokens{0} || committed.source == kTrapRow) return;
  pending_copies_[event.request] = {committed.source, committed.q, committed.commit};
  refer(Component::mamba, committed.source, 1);
}

void RankLedger::on(const Event& event, const CopyExecuted& copied) {
  const auto found = pending_copies_.find(event.request);
  if (found != pending_copies_.end() && found->second.commit == copied.commit) {
    drop_copy(event.request);
  }
}

void RankLedger::drop_copy(RequestId request) {
  const auto found = pending_copies_.find(request);
  if (found == pending_copies_.end()) return;
  refer(Component::mamba, found->second.source, -1);
  pending_copies_.erase(found);
}

}  // namespace lockstep::oracle
