#include "story.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace lockstep::oracle::test {

namespace {

constexpr NodeId kRoot{1};
constexpr std::string_view kLayout = "story-layout";

model::ModelSpec spec(std::string preset, std::optional<std::vector<std::string>> layers) {
  model::ModelSpec spec;
  spec.layers = std::move(layers);
  spec.preset = std::move(preset);
  spec.window = Tokens{3};
  return spec;
}

Pages pages(Tokens length) {
  return Pages{length / kPage};
}

// Reported once, with rank 0, however many ranks there are.
bool is_of_engine(const EventBody& body) {
  return std::holds_alternative<StepBegun>(body) ||
         std::holds_alternative<RequestSubmitted>(body) ||
         std::holds_alternative<RequestFinished>(body) ||
         std::holds_alternative<TokenAccepted>(body) || std::holds_alternative<Voted>(body) ||
         std::holds_alternative<GaveUp>(body);
}

}  // namespace

std::vector<TokenId> tokens(std::uint32_t first, std::size_t count) {
  std::vector<TokenId> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(TokenId{first + i});
  return all;
}

Story::Story(Tamper tamper, std::string preset, std::uint32_t ranks,
             std::optional<std::vector<std::string>> layers)
    : tamper_(std::move(tamper)), ranks_(ranks) {
  model_ =
      std::move(model::make_model(spec(std::move(preset), std::move(layers)), 1, kPage)).value();
  for (Component component : kComponents) {
    layouts_[index(component)] = model_->layout(component, kPage, false);
    memory_[index(component)].resize(layouts_[index(component)].row_bytes.index() * 9);
    for (std::uint32_t row = 8; row >= 1; --row) free_[index(component)].push_back(Row{row});
  }
  nodes_[kRoot].is_root = true;
  nodes_[kRoot].parent = kRoot;
  JudgeConfig config;
  config.geometry = model_->geometry();
  config.geometry.page = kPage;
  config.geometry.track_interval = kPage;
  config.cache.page = kPage;
  config.model = model_.get();
  config.layout_fingerprint = kLayout;
  config.ranks.assign(ranks, this);
  judge_ = std::make_unique<Judge>(config);
}

void Story::emit(RequestId id, EventBody body) {
  const std::uint32_t ranks = is_of_engine(body) ? 1 : ranks_;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) emit_on(rank, id, body);
}

void Story::emit_on(std::uint32_t rank, RequestId id, EventBody body) {
  Event event{StepId{step_}, Nanoseconds{static_cast<std::int64_t>(step_) * 1000}, RankId{rank}, id,
              std::move(body)};
  if (!tamper_ || tamper_(event, *this)) judge_->on_event(event);
}

void Story::emit_untampered(RequestId id, EventBody body) {
  judge_->on_event({StepId{step_}, Nanoseconds{0}, RankId{0}, id, std::move(body)});
}

std::set<std::string> Story::found() const {
  std::set<std::string> names;
  for (const Violation& violation : judge_->verdict().violations) names.insert(violation.invariant);
  return names;
}

std::string Story::report() const {
  std::string all;
  for (const Violation& v : judge_->verdict().violations) {
    all += v.invariant + ": expected " + v.expected + "; actual " + v.actual + "\n";
  }
  return all;
}

// ---------------------------------------------------------------- pools and locks

std::span<std::byte> Story::bytes(Component component, Row row) {
  const std::size_t size = layouts_[index(component)].row_bytes.index();
  return std::span(memory_[index(component)]).subspan(row.index() * size, size);
}

std::span<const std::byte> Story::row_bytes(Component component, Row row) const {
  return const_cast<Story*>(this)->bytes(component, row);
}

Row Story::allocate(RequestId id, Component component, Purpose purpose) {
  std::vector<Row>& free = free_[index(component)];
  const Row row = free.back();
  free.pop_back();
  emit(id, RowsAllocated{component, purpose, {&row, 1}});
  return row;
}

void Story::release(Component component, std::vector<Row> rows) {
  std::erase(rows, kTrapRow);
  if (rows.empty()) return;
  for (Row row : rows) free_[index(component)].push_back(row);
  emit(kNoRequest, RowsFreed{component, rows});
}

LockId Story::lock(RequestId id, LockHolder holder, NodeId node) {
  const StoryNode& end = nodes_.at(node);
  const Pages node_end = end.begin + Pages{static_cast<std::int64_t>(end.hashes.size())};
  const Ticket ticket{node, {node_end - Pages{1}, node_end}, end.state != kTrapRow};
  const LockId lock{next_lock_++};
  tickets_[lock] = ticket;
  count_lock(ticket, 1);
  emit(id, LockTaken{lock, holder, node, ticket.swa, ticket.mamba});
  return lock;
}

void Story::unlock(LockId lock) {
  count_lock(tickets_.at(lock), -1);
  tickets_.erase(lock);
  emit(kNoRequest, LockReleased{lock});
}

void Story::count_lock(const Ticket& ticket, int change) {
  StoryNode& end = nodes_.at(ticket.node);
  if (ticket.mamba) end.state_locks += static_cast<std::uint32_t>(change);
  for (Pages page = ticket.swa.begin; page < ticket.swa.end; ++page) {
    end.swa_locks[(page - end.begin).index()] += static_cast<std::uint32_t>(change);
  }
  for (NodeId id = ticket.node;; id = nodes_.at(id).parent) {
    nodes_.at(id).full_locks += static_cast<std::uint32_t>(change);
    if (id == kRoot) return;
  }
}

// ---------------------------------------------------------------- requests

void Story::submit(RequestId id, std::vector<TokenId> prompt, Tokens decode) {
  StoryRequest request;
  request.tokens = std::move(prompt);
  request.prompt = Tokens{static_cast<std::int64_t>(request.tokens.size())};
  ContentId content = contents_.root({model_->fingerprint(), kLayout, {}, {}});
  for (Pages page{0}; page < pages(request.prompt); ++page) {
    content = contents_.page_after(content, std::span(request.tokens).subspan(page.index() * 4, 4));
    request.chain.push_back(content);
  }
  requests_[id] = request;
  emit(id, RequestSubmitted{requests_[id].tokens, decode, {}, {}, false});
}

void Story::match(RequestId id, Tokens hit, std::vector<Tokens> restorable, Tokens boundary) {
  emit(id, Matched{hit, hit, kRoot, true});
  emit(id, LookedUp{hit, restorable});
  emit(id, Voted{hit, boundary});
}

void Story::commit_empty(RequestId id) {
  request(id).q = allocate(id, Component::mamba, Purpose::private_slot);
  emit(id, Committed{Tokens{0}, Tokens{0}, NodeId{0}, kTrapRow, request(id).q, false, false,
                     next_commit(id)});
  model_->clear_slot(bytes(Component::mamba, request(id).q));
  emit(id, SlotCleared{request(id).q, request(id).commit});
}

void Story::commit_hit(RequestId id, NodeId node_id) {
  StoryRequest& r = request(id);
  const StoryNode& end = nodes_.at(node_id);
  r.q = allocate(id, Component::mamba, Purpose::private_slot);
  r.full = end.full;
  r.swa = end.swa;
  r.own_from = Pages{static_cast<std::int64_t>(end.full.size())};
  r.node = node_id;
  r.lock = lock(id, LockHolder::request, node_id);
  r.pending_source = end.state;
  const Tokens boundary = kPage * r.own_from.value();
  emit(id, Committed{boundary, boundary, node_id, end.state, r.q, false, false, next_commit(id)});
  copy_to_private_slot(id, end.state);
}

NodeId Story::add_node(const StoryRequest& request, Pages begin, Pages end) {
  const NodeId id{next_node_++};
  StoryNode& node = nodes_[id];
  node.parent = kRoot;
  ++nodes_[kRoot].children;
  node.begin = begin;
  for (Pages page = begin; page < end; ++page) {
    node.hashes.push_back(contents_.hash(request.chain[page.index()]));
  }
  node.swa_locks.resize(node.hashes.size());
  emit(kNoRequest, NodeCreated{id, kRoot, begin, end});
  return id;
}

// LOAD, PREPARE, INSERT, COMMIT of [0, boundary) into an empty tree; then the bytes arrive and Q is
// copied.
void Story::restore(RequestId id, Tokens boundary) {
  StoryRequest& r = request(id);
  const Pages end = pages(boundary);
  for (Pages page{0}; page < end; ++page)
    r.full.push_back(allocate(id, Component::full, Purpose::load));
  r.swa.assign(end.index() - 1, kTrapRow);
  r.swa.push_back(allocate(id, Component::swa, Purpose::load));
  const Row target = allocate(id, Component::mamba, Purpose::state_target);
  r.q = allocate(id, Component::mamba, Purpose::private_slot);
  emit(id, LoadPlanned{Tokens{0}, boundary, r.full, {&r.swa.back(), 1}, target});
  emit(id, Prepared{boundary - kPage});

  const NodeId node_id = add_node(r, Pages{0}, end);
  StoryNode& node = nodes_[node_id];
  node.full = r.full;
  node.swa = r.swa;
  node.state = target;
  const PageRange all{Pages{0}, end};
  const PageRange window{end - Pages{1}, end};
  Inserted inserted;
  inserted.end = inserted.fed = inserted.state_depth = boundary;
  inserted.cursor = boundary - kPage;
  inserted.node = node_id;
  inserted.full_adopted = {&all, 1};
  inserted.swa_adopted = {&window, 1};
  inserted.full_adopted_rows = r.full;
  inserted.swa_adopted_rows = {&r.swa.back(), 1};
  inserted.state = target;
  emit(id, inserted);
  r.own_from = end;
  r.node = node_id;
  r.lock = lock(id, LockHolder::request, node_id);
  r.pending_source = target;
  emit(id, Committed{Tokens{0}, boundary, node_id, target, r.q, false, true, next_commit(id)});

  const LoadId load{next_transfer_++};
  const LockId endpoint = lock(id, LockHolder::load, node_id);
  const std::vector<PageHash>& hashes = node.hashes;
  const std::array<TransferView, 3> views{
      TransferView{Component::full, r.full, hashes, all},
      TransferView{Component::swa, {&r.swa.back(), 1}, {&hashes.back(), 1}, window},
      TransferView{Component::mamba, {&target, 1}, {&hashes.back(), 1}, window}};
  emit(id, LoadQueued{load, boundary, views});
  emit(id, LoadStarted{load});
  for (const TransferView& view : views) {
    for (std::size_t i = 0; i < view.rows.size(); ++i) {
      std::ranges::copy(objects_.at(key(view.hashes[i], view.component)),
                        bytes(view.component, view.rows[i]).begin());
    }
  }
  emit(id, LoadFinished{load, true});
  unlock(endpoint);
  copy_to_private_slot(id, target);
}

void Story::copy_to_private_slot(RequestId id, Row source) {
  const Row q = request(id).q;
  std::ranges::copy(row_bytes(Component::mamba, source), bytes(Component::mamba, q).begin());
  emit(id, CopyExecuted{source, q, request(id).commit});
  request(id).pending_source = kTrapRow;
}

void Story::restore_again(RequestId id, Tokens boundary) {
  StoryRequest& r = request(id);
  const Pages end = pages(boundary);
  std::vector<Row> full;
  for (Pages page{0}; page < end; ++page)
    full.push_back(allocate(id, Component::full, Purpose::load));
  const Row swa = allocate(id, Component::swa, Purpose::load);
  const Row target = allocate(id, Component::mamba, Purpose::state_target);
  emit(id, LoadPlanned{Tokens{0}, boundary, full, {&swa, 1}, target});
  emit(id, Prepared{boundary - kPage});

  const NodeId node_id = nodes_.rbegin()->first;
  const StoryNode& node = nodes_.at(node_id);
  const PageRange all{Pages{0}, end};
  const PageRange window{end - Pages{1}, end};
  Inserted inserted;
  inserted.end = inserted.fed = inserted.state_depth = boundary;
  inserted.cursor = boundary - kPage;
  inserted.node = node_id;
  inserted.full_duplicate = {&all, 1};
  inserted.swa_duplicate = {&window, 1};
  inserted.state = target;
  inserted.mamba_exist = true;
  emit(id, inserted);
  release(Component::full, full);
  release(Component::swa, {swa});
  r.full = node.full;
  r.swa = node.swa;
  r.own_from = end;
  r.node = node_id;
  r.lock = lock(id, LockHolder::request, node_id);
  release(Component::mamba, {target});
  r.q = allocate(id, Component::mamba, Purpose::private_slot);
  r.pending_source = node.state;
  emit(id, Committed{Tokens{0}, boundary, node_id, node.state, r.q, true, true, next_commit(id)});
  copy_to_private_slot(id, node.state);
}

void Story::run_model(const StoryRequest& request, Tokens start, std::span<const TokenId> fed,
                      std::span<const SnapshotView> snapshots, std::vector<std::byte>& outputs) {
  model::Memory memory;
  memory.page = kPage;
  for (Component component : kComponents) {
    memory.components[index(component)] = {memory_[index(component)].data(),
                                           &layouts_[index(component)]};
  }
  model::Segment segment;
  segment.start = start;
  segment.tokens = fed;
  segment.full = request.full;
  segment.swa = request.swa;
  segment.q = request.q;
  segment.snapshots = snapshots;
  std::vector<std::byte> activations(fed.size() * model_->activation_bytes().index());
  outputs.resize(fed.size() * model_->output_bytes().index());
  model_->embed(segment, activations);
  for (std::uint32_t layer = 0; layer < model_->layers().size(); ++layer) {
    model_->run_layer(LayerId{layer}, segment, memory, activations);
  }
  model_->head(segment, activations, outputs);
}

TokenId Story::next_token(std::span<const std::byte> outputs) const {
  return model_->next_token(outputs.last(model_->output_bytes().index()));
}

// Feeds [what was fed, end), tracks the deepest page end that it reaches, and accepts the token
// that follows the last one.
void Story::forward(RequestId id, Tokens end) {
  StoryRequest& r = request(id);
  const Tokens start = std::max(kPage * r.own_from.value(), Tokens{0});
  while (kPage * static_cast<std::int64_t>(r.full.size()) < end) {
    r.full.push_back(allocate(id, Component::full, Purpose::forward));
    r.swa.push_back(allocate(id, Component::swa, Purpose::forward));
  }
  const Tokens deepest = kPage * (end / kPage);
  if (deepest > start) r.tracked = {{deepest, allocate(id, Component::mamba, Purpose::tracking)}};
  const auto fed = std::span(r.tokens).subspan(start.index(), (end - start).index());
  std::vector<std::byte> outputs;
  run_model(r, start, fed, r.tracked, outputs);
  const SegmentView segment{id, start, fed, r.full, r.swa, r.q, r.tracked, {}, outputs};
  emit(kNoRequest, ForwardAccepted{ForwardId{step_}, {&segment, 1}});
  if (!r.tracked.empty()) emit(id, CheckpointTracked{deepest, r.tracked.front().slot});
  if (end.index() < r.tokens.size()) return;
  const TokenId token = next_token(outputs);
  emit(id, TokenAccepted{token, end});
  r.tokens.push_back(token);
}

void Story::insert(RequestId id, Tokens end_tokens, InsertCause cause) {
  StoryRequest& r = request(id);
  const Pages end = pages(end_tokens);
  const NodeId node_id = add_node(r, Pages{0}, end);
  StoryNode& node = nodes_[node_id];
  node.full.assign(r.full.begin(), r.full.begin() + end.value());
  node.swa.assign(r.swa.begin(), r.swa.begin() + end.value());
  node.state = r.tracked.front().slot;
  r.tracked.clear();
  const PageRange all{Pages{0}, end};
  Inserted inserted;
  inserted.cause = cause;
  inserted.end = inserted.state_depth = end_tokens;
  inserted.fed = r.prompt;
  inserted.node = node_id;
  inserted.full_adopted = inserted.swa_adopted = {&all, 1};
  inserted.full_adopted_rows = node.full;
  inserted.swa_adopted_rows = node.swa;
  inserted.state = node.state;
  emit(id, inserted);
  r.own_from = end;
  r.node = node_id;
  r.lock = lock(id, LockHolder::request, node_id);
}

std::string Story::key(const PageHash& hash, Component component, std::uint32_t rank) const {
  return hash.hex() + "/" + std::string(name(component)) + "/" + std::to_string(rank) + "of" +
         std::to_string(ranks_);
}

void Story::emit_put(const PageHash& hash, Component component) {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::string name = key(hash, component, rank);
    emit_on(rank, kNoRequest, StorePut{name, true, true});
  }
}

void Story::offload(RequestId id) {
  const NodeId node_id = request(id).node;
  StoryNode& node = nodes_.at(node_id);
  const Pages end{static_cast<std::int64_t>(node.full.size())};
  const std::array<TransferView, 3> views{
      TransferView{Component::full, node.full, node.hashes, {Pages{0}, end}},
      TransferView{Component::swa, node.swa, node.hashes, {Pages{0}, end}},
      TransferView{
          Component::mamba, {&node.state, 1}, {&node.hashes.back(), 1}, {end - Pages{1}, end}}};
  const LockId ticket = lock(kNoRequest, LockHolder::offload, node_id);
  node.offload_pending = true;
  const OffloadId offload{next_transfer_++};
  emit(kNoRequest, OffloadQueued{offload, node_id, views});
  emit(id, OffloadWalked{node_id});
  for (const TransferView& view : views) {
    for (std::size_t i = 0; i < view.rows.size(); ++i) {
      const auto row = row_bytes(view.component, view.rows[i]);
      objects_[key(view.hashes[i], view.component)].assign(row.begin(), row.end());
      emit_put(view.hashes[i], view.component);
    }
  }
  node.offload_pending = false;
  node.full_stored = node.state_stored = true;
  emit(kNoRequest, StoredFlagSet{node_id, Component::full, {Pages{0}, end}});
  emit(kNoRequest, StoredFlagSet{node_id, Component::swa, {Pages{0}, end}});
  emit(kNoRequest, StoredFlagSet{node_id, Component::mamba, {end, end}});
  emit(kNoRequest, OffloadFinished{offload, true});
  unlock(ticket);
}

void Story::finish(RequestId id) {
  StoryRequest& r = request(id);
  const auto own = [&](const std::vector<Row>& rows) {
    return std::vector<Row>(rows.begin() + r.own_from.value(), rows.end());
  };
  release(Component::mamba, {r.q});
  for (const SnapshotView& tracked : r.tracked) release(Component::mamba, {tracked.slot});
  release(Component::full, own(r.full));
  release(Component::swa, own(r.swa));
  if (r.lock) unlock(*r.lock);
  requests_.erase(id);
  emit(id, RequestFinished{});
}

void Story::evict(NodeId node_id, EvictionCause cause) {
  const StoryNode node = nodes_.at(node_id);
  const Pages end{static_cast<std::int64_t>(node.full.size())};
  const auto out = [&](Component component, std::vector<Row> rows) {
    std::erase(rows, kTrapRow);
    if (rows.empty()) return;
    emit(kNoRequest, Evicted{node_id, component, {Pages{0}, end}, rows, cause});
    release(component, rows);
  };
  out(Component::mamba, {node.state});
  out(Component::swa, node.swa);
  out(Component::full, node.full);
  nodes_.erase(node_id);
  --nodes_[kRoot].children;
  emit(kNoRequest, NodeRemoved{node_id});
}

void Story::flush() {
  std::vector<NodeId> all;
  for (const auto& [id, node] : nodes_) {
    if (!node.is_root) all.push_back(id);
  }
  for (NodeId id : all) evict(id, EvictionCause::flush);
  emit(kNoRequest, CacheFlushed{});
}

void Story::store_first_prompt() {
  const RequestId first{0};
  step();
  submit(first, tokens(1, 9), Tokens{1});
  match(first, Tokens{0}, {}, Tokens{0});
  commit_empty(first);
  step();
  forward(first, Tokens{9});
  insert(first, Tokens{8});
  offload(first);
  finish(first);
  step();
  flush();
}

void Story::play() {
  store_first_prompt();
  const RequestId second{1};
  submit(second, tokens(1, 9), Tokens{1});
  match(second, Tokens{0}, {Tokens{8}}, Tokens{8});
  restore(second, Tokens{8});
  step();
  forward(second, Tokens{9});
  finish(second);
  end();
}

void Story::play_twice() {
  store_first_prompt();
  for (RequestId id : {RequestId{1}, RequestId{2}}) {
    submit(id, tokens(1, 9), Tokens{1});
    match(id, Tokens{0}, {Tokens{8}}, Tokens{8});
  }
  restore(RequestId{1}, Tokens{8});
  restore_again(RequestId{2}, Tokens{8});
  step();
  for (RequestId id : {RequestId{1}, RequestId{2}}) {
    forward(id, Tokens{9});
    finish(id);
  }
  end();
}

void Story::end() {
  step();
  judge_->audit(true);
  judge_->end_of_run();
}

// ---------------------------------------------------------------- what it shows

Rows Story::evictable_rows(Component component) const {
  Rows rows = shown_evictable_error;
  for (const auto& [id, node] : nodes_) {
    if (node.is_root) continue;
    if (component == Component::full && node.full_locks == 0)
      rows += Rows{static_cast<std::int64_t>(node.full.size())};
    if (component == Component::mamba && node.state != kTrapRow && node.state_locks == 0) ++rows;
    for (std::size_t i = 0; component == Component::swa && i < node.swa.size(); ++i) {
      if (node.swa[i] != kTrapRow && node.swa_locks[i] == 0) ++rows;
    }
  }
  return rows;
}

NodeView Story::view(NodeId id, const StoryNode& node) const {
  NodeView view;
  view.id = id;
  view.parent = node.parent;
  view.is_root = node.is_root;
  view.begin = node.begin;
  view.hashes = node.hashes;
  view.full = node.full;
  view.swa = node.swa;
  view.state = node.state;
  view.children = node.children;
  view.full_locks = node.full_locks;
  view.swa_locks = node.swa_locks;
  view.state_locks = node.state_locks;
  view.full_stored = node.full_stored;
  view.state_stored = node.state_stored;
  view.offload_pending = node.offload_pending;
  return view;
}

RequestRowsView Story::view(RequestId id, const StoryRequest& request) const {
  return {id,
          request.full,
          request.own_from,
          request.swa,
          request.own_from,
          request.q,
          request.tracked,
          {},
          request.pending_source,
          false};
}

void Story::for_each_node(const std::function<void(const NodeView&)>& visit) const {
  for (const auto& [id, node] : nodes_) visit(view(id, node));
}

void Story::for_each_request(const std::function<void(const RequestRowsView&)>& visit) const {
  for (const auto& [id, request] : requests_) visit(view(id, request));
}

void Story::for_each_transfer(const std::function<void(const TransferRowsView&)>&) const {}

bool Story::request_rows(RequestId id,
                         const std::function<void(const RequestRowsView&)>& visit) const {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return false;
  visit(view(id, found->second));
  return true;
}

bool Story::node(NodeId id, const std::function<void(const NodeView&)>& visit) const {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return false;
  visit(view(id, found->second));
  return true;
}

}  // namespace lockstep::oracle::test
