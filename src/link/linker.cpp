#include "link/linker.h"

#include <algorithm>

namespace lockstep {

Linker::Linker(const LinkerConfig& config, const LinkParts& parts, Device& device, PoolGroup& pools,
               Store& store, EventSink& sink, AllocationGate* gate)
    : config_(config),
      pools_(pools),
      keys_(parts.key_scheme(config.geometry.page, config.rank, config.ranks)),
      tree_(std::make_unique<RadixTree>(config.geometry, pools, sink, config.rank,
                                        parts.eviction_policy(config.rank), parts.node_splitter())),
      rank_{config.rank, config.geometry, config.cache, device, pools, *tree_, store, *keys_, sink},
      allocator_(parts.row_allocator(rank_, gate)),
      planner_(parts.transfer_planner()),
      match_(parts.match_phase(rank_)),
      lookup_(parts.lookup_phase(rank_)),
      load_(parts.load_phase(rank_, *allocator_)),
      insert_(parts.insert_phase(rank_)),
      loads_(parts.load_queue(rank_)),
      roll_back_(parts.roll_back_phase(rank_)),
      quarantine_(rank_),
      commit_(parts.commit_phase(rank_, *planner_, *loads_)),
      cow_(parts.cow_phase(rank_, *loads_)),
      offloads_(parts.offload_queue(rank_)),
      offload_(parts.offload_phase(rank_, *planner_, *offloads_)),
      checkpoints_(parts.checkpoint_tracker(rank_, *allocator_)),
      drafts_(parts.draft_columns(rank_, *allocator_)),
      window_(parts.window_release(rank_)) {}

Linker::~Linker() {
  for (auto& [id, request] : requests_) {
    if (request->filling) request->load.disown();
  }
}

RequestState& Linker::state(RequestId request) {
  const auto found = requests_.find(request);
  CHECK("linker.request_is_open", found != requests_.end());
  return *found->second;
}

const RequestState& Linker::state(RequestId request) const {
  const auto found = requests_.find(request);
  CHECK("linker.request_is_open", found != requests_.end());
  return *found->second;
}

PageHash Linker::namespace_of(const RequestNamespace& names) const {
  return keys_->namespace_hash(
      {config_.model_fingerprint, config_.layout_fingerprint, names.extra_key, names.cache_salt});
}

void Linker::name_pages(RequestState& request, std::span<const TokenId> tokens) const {
  const PageHash& previous =
      request.hashes.empty() ? request.namespace_hash : request.hashes.back();
  const std::size_t named = request.hashes.size() * config_.geometry.page.index();
  if (tokens.size() < named + config_.geometry.page.index()) return;
  const std::vector<PageHash> more = keys_->page_hashes(previous, tokens.subspan(named));
  request.hashes.insert(request.hashes.end(), more.begin(), more.end());
}

// ---------------------------------------------------------------- life of a request

void Linker::open(RequestId request, const RequestNamespace& names) {
  CHECK("linker.open.once", !requests_.contains(request));
  auto state = std::make_unique<RequestState>();
  state->id = request;
  state->namespace_hash = namespace_of(names);
  requests_.emplace(request, std::move(state));
}

void Linker::close(RequestId request) {
  give_back(state(request));
  requests_.erase(request);
}

void Linker::give_back(RequestState& request) {
  request.pending_copy.reset();
  for (Checkpoint& checkpoint : request.tracked) checkpoint.slot.release();
  request.columns.release();
  request.q.release();
  if (request.filling)
    loads_->abandon(*std::exchange(request.filling, std::nullopt), std::move(request.load));
  else
    request.load.release();
  request.own_swa.release();
  request.own_full.release();
  request.lock.release();
}

// ---------------------------------------------------------------- MATCH, LOOKUP, admission

MatchResult Linker::match(RequestId id, std::span<const TokenId> tokens, bool query_store) {
  RequestState& request = state(id);
  name_pages(request, tokens);
  match_->run(request, Tokens{static_cast<std::int64_t>(tokens.size())}, query_store);
  return {request.device_hit, request.full_matched};
}

std::vector<Tokens> Linker::lookup(RequestId id, std::span<const TokenId> tokens) {
  RequestState& request = state(id);
  lookup_->run(request, tokens);
  return request.restorable;
}

void Linker::drop_match(RequestId id) {
  RequestState& request = state(id);
  request.lock.release();
  request.node = nullptr;
  request.device_hit = Tokens{0};
  request.restorable.clear();
}

const Node* Linker::node_at(const RequestState& request, Tokens boundary) const {
  const Pages end = config_.geometry.pages(boundary);
  const TreePath path =
      tree_->walk(request.namespace_hash, std::span(request.hashes).first(end.index()));
  return tree_->node_ending_at(path, end);
}

bool Linker::fits(RequestId id, Tokens boundary) const {
  if (!rank_.has(Component::mamba)) return true;
  const RequestState& request = state(id);
  Rows supply = pools_.pool(Component::mamba).free() + tree_->evictable_states();
  // The boundary's own state is what the request wants to keep.
  const Node* node = boundary > request.device_hit ? node_at(request, boundary) : nullptr;
  if (node != nullptr && node->has_state() && node->state_locks == 0) supply -= Rows{1};
  return slots_wanted(request, boundary) <= supply;
}

Rows Linker::slots_wanted(const RequestState& request, Tokens boundary) const {
  Rows wanted{request.q.empty() ? 1 : 0};
  if (boundary == request.device_hit) return wanted;
  const Node* node = node_at(request, boundary);
  const bool has_state = node != nullptr && node->has_state();
  if (!has_state || config_.cache.publish == PublishPolicy::after_load) ++wanted;
  return wanted;
}

bool Linker::load(RequestId id, Tokens boundary, LoadStage stage) {
  return load_->run(state(id), boundary, stage);
}

void Linker::abort(RequestId id) {
  load_->abort(state(id));
}

bool Linker::secure_private_slot(RequestId id) {
  return load_->secure_private_slot(state(id));
}

void Linker::release_private_slot(RequestId id) {
  state(id).q.release();
}

LoadId Linker::begin_load(RequestId id, Tokens boundary) {
  RequestState& request = state(id);
  load_->planned(request, boundary);
  if (!request.load.private_slot.empty()) request.q = std::move(request.load.private_slot);
  const LoadId load = loads_->next_id();
  commit_->queue_unpublished(request, boundary, load);
  return load;
}

void Linker::commit_load(RequestId id, Tokens boundary) {
  RequestState& request = state(id);
  std::optional<LoadId> load;
  if (config_.cache.publish == PublishPolicy::at_commit) {
    load_->planned(request, boundary);
    load = loads_->next_id();
  }
  insert_->prepare(request, boundary);
  const InsertOutcome inserted = insert_->insert_load(request, boundary, load);
  commit_->commit_load(request, boundary, inserted, load);
}

void Linker::commit_hit(RequestId id) {
  commit_->commit_hit(state(id));
}

void Linker::commit_empty(RequestId id) {
  commit_->commit_empty(state(id));
}

void Linker::start_loads() {
  loads_->start_batch();
}

// ---------------------------------------------------------------- forwards

Tokens Linker::reserve(RequestId id, Tokens start, Tokens count) {
  RequestState& request = state(id);
  window_->run(request, start);
  const Pages wanted = config_.geometry.pages_touched(start + count);
  Pages covered = grow(request, Component::full, wanted);
  if (rank_.has(Component::swa)) covered = std::min(covered, grow(request, Component::swa, wanted));
  const Tokens granted = std::clamp(config_.geometry.tokens(covered) - start, Tokens{0}, count);
  // Pages of one component are of no use where the other has none, and ranks that grant equally
  // much must keep equally much.
  if (granted < count) trim(id, start + granted);
  return granted;
}

Pages Linker::grow(RequestState& request, Component component, Pages wanted) {
  std::vector<Row>& table = component == Component::full ? request.full : request.swa;
  OwnedRows& own = component == Component::full ? request.own_full : request.own_swa;
  const Pages have{static_cast<std::int64_t>(table.size())};
  if (!rank_.has(component) || have >= wanted) return std::max(have, wanted);
  OwnedRows rows = allocator_->allocate_up_to(request.id, component, Rows{(wanted - have).value()},
                                              Purpose::forward);
  table.insert(table.end(), rows.rows().begin(), rows.rows().end());
  own.append(std::move(rows));
  return Pages{static_cast<std::int64_t>(table.size())};
}

std::vector<SnapshotView> Linker::track(RequestId id, Tokens start, Tokens end, bool decode) {
  RequestState& request = state(id);
  return decode ? checkpoints_->track_decode(request, start, end)
                : checkpoints_->track_prefill(request, start, end);
}

void Linker::trim(RequestId id, Tokens end) {
  RequestState& request = state(id);
  const Pages pages = config_.geometry.pages_touched(end);
  trim_table(request.full, request.own_full, pages);
  trim_table(request.swa, request.own_swa, pages);
}

void Linker::trim_table(std::vector<Row>& table, OwnedRows& own, Pages pages) {
  const Rows surplus{static_cast<std::int64_t>(table.size()) - pages.value()};
  if (surplus <= Rows{0}) return;
  OwnedRows kept = own.take_front(own.size() - surplus);
  own.release();
  own = std::move(kept);
  table.resize(pages.index());
}

void Linker::untrack(RequestId id, Tokens depth) {
  std::erase_if(state(id).tracked,
                [&](const Checkpoint& checkpoint) { return checkpoint.depth == depth; });
}

Tokens Linker::draft(RequestId id, Tokens start, Tokens drafts) {
  return drafts_->take(state(id), start, drafts);
}

RequestTables Linker::begin_forward(RequestId id) {
  RequestState& request = state(id);
  request.awaited.clear();
  for (const Node* n = request.node; n != nullptr; n = n->parent) {
    for (LoadId load : n->loading) {
      if (std::ranges::find(request.awaited, load) == request.awaited.end()) {
        request.awaited.push_back(load);
      }
    }
  }
  return {request.full, request.swa, request.q.empty() ? kTrapRow : request.q.row(),
          request.awaited, DraftColumns::views(request)};
}

void Linker::before_layer(RequestId id, LayerId layer,
                          const std::function<void(std::span<std::byte>)>& clear) {
  RequestState& request = state(id);
  cow_->before_layer(request, layer, request.awaited, clear);
  loads_->wait_for_layer(StreamKind::compute, layer, request.awaited);
}

void Linker::accepted(RequestId id, Tokens end, bool decode) {
  RequestState& request = state(id);
  request.fed = end;
  cow_->done(request);
  if (!request.columns.empty()) {
    drafts_->keep(request, end);
    checkpoints_->drop_rejected(request, end);
  }
  checkpoints_->written(request, end);
  if (decode) checkpoints_->supersede(request);
}

// ---------------------------------------------------------------- chunk end, finish, retract

bool Linker::insert_meets_load(RequestState& request, Tokens depth) {
  const Pages end = config_.geometry.pages(depth);
  const TreePath path =
      tree_->walk(request.namespace_hash, std::span(request.hashes).first(end.index()));
  return std::ranges::any_of(path.nodes, [](const Node* node) { return !node->loading.empty(); });
}

std::vector<Checkpoint> Linker::chunk_checkpoints(RequestState& request, Tokens fed) {
  if (rank_.has(Component::mamba)) return checkpoints_->donate_chunk_end(request);
  std::vector<Checkpoint> checkpoints;
  if (auto newest = newest_checkpoint(request, fed)) checkpoints.push_back(std::move(*newest));
  return checkpoints;
}

std::optional<Checkpoint> Linker::newest_checkpoint(RequestState& request, Tokens fed) {
  if (rank_.has(Component::mamba)) return checkpoints_->donate_newest(request, fed);
  const Tokens depth = config_.geometry.page_floor(checkpoints_->insertable(fed));
  if (depth <= config_.geometry.tokens(request.own_from)) return std::nullopt;
  return Checkpoint{depth, {}, true, false};
}

void Linker::chunk_end(RequestId id, std::span<const TokenId> tokens, Tokens fed, bool last_chunk) {
  RequestState& request = state(id);
  name_pages(request, tokens);
  if (!insert_meets_load(request, fed)) {
    for (Checkpoint& checkpoint : chunk_checkpoints(request, fed)) {
      insert_->insert_own(request, std::move(checkpoint), fed, InsertCause::chunk_end);
    }
  }
  if (last_chunk) offload(request);
}

bool Linker::finish(RequestId id, std::span<const TokenId> tokens, Tokens fed) {
  RequestState& request = state(id);
  name_pages(request, tokens);
  if (insert_meets_load(request, fed)) return false;
  if (auto newest = newest_checkpoint(request, fed)) {
    insert_->insert_own(request, std::move(*newest), fed, InsertCause::finish);
  }
  offload(request);
  return true;
}

void Linker::offload(RequestState& request) {
  if (request.node != nullptr) offload_->walk(request.id, *request.node);
}

void Linker::retract(RequestId id, std::span<const TokenId> tokens, Tokens fed) {
  RequestState& request = state(id);
  name_pages(request, tokens);
  if (insert_meets_load(request, fed)) return;
  if (auto newest = newest_checkpoint(request, fed)) {
    insert_->insert_own(request, std::move(*newest), fed, InsertCause::retract);
  }
}

// ---------------------------------------------------------------- transfers

void Linker::pump() {
  loads_->pump();
  offloads_->pump();
}

std::optional<LoadId> Linker::oldest_load() const {
  return loads_->oldest();
}

std::optional<FinishedLoad> Linker::oldest_finished_load() const {
  return loads_->oldest_finished();
}

std::vector<RequestId> Linker::settle_load(LoadId load, bool good) {
  std::vector<RequestId> affected;
  std::vector<TornRows> torn;
  if (config_.cache.publish == PublishPolicy::after_load) {
    for (auto& [id, request] : requests_) {
      if (request->filling == load) request->filling.reset();
    }
  } else if (!good) {
    Node& endpoint = loads_->oldest_endpoint();
    affected = sharers(roll_back_->scope(endpoint, loads_->oldest_transfers()));
    for (RequestId id : affected) reset(id);
    torn = roll_back_->run(endpoint, loads_->oldest_transfers());
  }
  loads_->settle(load, good);
  quarantine_.add(std::move(torn), loads_->last_id());
  return affected;
}

std::vector<RequestId> Linker::sharers(const std::vector<const Node*>& scope) const {
  std::vector<RequestId> sharers;
  for (const auto& [id, request] : requests_) {
    if (!request->lock.open()) continue;
    for (const Node* n = request->node; n != nullptr; n = n->parent) {
      if (std::ranges::find(scope, n) == scope.end()) continue;
      sharers.push_back(id);
      break;
    }
  }
  return sharers;
}

void Linker::reset(RequestId id) {
  RequestState& request = state(id);
  OwnedRows q = std::move(request.q);
  give_back(request);
  RequestState fresh;
  fresh.id = request.id;
  fresh.namespace_hash = request.namespace_hash;
  fresh.hashes = std::move(request.hashes);
  fresh.q = std::move(q);
  request = std::move(fresh);
}

std::size_t Linker::releasable_quarantine() const {
  return quarantine_.releasable(loads_->oldest());
}

void Linker::release_quarantine(std::size_t entries) {
  quarantine_.release(entries);
}

std::optional<FinishedOffload> Linker::oldest_finished_offload() const {
  return offloads_->oldest_finished();
}

void Linker::settle_offload(OffloadId offload, bool good) {
  offloads_->settle(offload, good);
}

bool Linker::transfers_pending() const {
  return loads_->size() + offloads_->size() > 0 || !quarantine_.empty();
}

bool Linker::path_is_loading(RequestId id) const {
  for (const Node* n = state(id).node; n != nullptr; n = n->parent) {
    if (!n->loading.empty()) return true;
  }
  return false;
}

// ---------------------------------------------------------------- eviction and flush

void Linker::evict(Component component, Rows count) {
  if (rank_.has(component)) tree_->evict(component, count, EvictionCause::asked);
}

void Linker::evict_at(Component component, const RequestNamespace& names,
                      std::span<const TokenId> tokens, Tokens at) {
  const Pages end = config_.geometry.pages(at);
  const std::size_t length = config_.geometry.tokens(end).index();
  if (!rank_.has(component) || end == Pages{0} || length > tokens.size()) return;
  const std::vector<PageHash> hashes =
      keys_->page_hashes(namespace_of(names), tokens.first(length));
  const TreePath path = tree_->walk(namespace_of(names), hashes);
  if (path.matched < end) return;
  Node& node = *path.nodes.back();
  if (component == Component::mamba && node.end() != end) return;
  if (tree_->may_evict(node, component)) tree_->evict_from(node, component, EvictionCause::asked);
}

void Linker::shrink(Component component, Rows keep) {
  if (!rank_.has(component)) return;
  RowPool& pool = pools_.pool(component);
  const Rows shortfall = pool.in_service() - keep - pool.free();
  if (shortfall > Rows{0}) tree_->evict(component, shortfall, EvictionCause::pressure);
  pool.shrink(keep);
}

void Linker::flush() {
  tree_->clear();
  rank_.emit(kNoRequest, CacheFlushed{});
}

}  // namespace lockstep
