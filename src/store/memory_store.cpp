#include "store/memory_store.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace lockstep {
namespace {

void flip_bit(std::span<std::byte> bytes, std::uint64_t bit) {
  if (bytes.empty()) return;
  bit %= bytes.size() * 8;
  bytes[bit / 8] ^= std::byte{1} << (bit % 8);
}

// The part of [offset, offset + wanted) that an object of `size` bytes has.
Bytes available(Bytes size, Bytes offset, Bytes wanted) {
  return std::clamp(size - offset, Bytes{0}, wanted);
}

Bytes size_of(std::span<const std::byte> bytes) {
  return Bytes{static_cast<std::int64_t>(bytes.size())};
}

}  // namespace

void BatchFault::add(const BatchFault& other) {
  delay = std::max(delay, other.delay);
  late = std::max(late, other.late);
  reordered = reordered || other.reordered;
}

bool StoreFaults::on_exists(const ObjectKey& /*key*/, bool present) {
  return present;
}
GetFault StoreFaults::on_get(const GetItem& /*item*/) {
  return {};
}
PutFault StoreFaults::on_put(const PutItem& /*item*/) {
  return {};
}

RankId rank_of(std::string_view key) {
  const std::size_t slash = key.rfind('/');
  if (slash == std::string_view::npos) return RankId{0};
  std::uint32_t rank = 0;
  const char* end = key.data() + key.size();
  const auto [next, error] = std::from_chars(key.data() + slash + 1, end, rank);
  const bool is_rank = error == std::errc{} && std::string_view(next, end).starts_with("of");
  return is_rank ? RankId{rank} : RankId{0};
}

MemoryStore::MemoryStore(Timers& timers, EventSink& sink, MemoryStoreConfig config,
                         StoreFaults* faults)
    : timers_(timers),
      sink_(sink),
      config_(config),
      faults_(faults != nullptr ? *faults : no_faults_),
      lifeline_(std::make_shared<Lifeline>()) {
  lifeline_->store = this;
}

MemoryStore::~MemoryStore() {
  lifeline_->store = nullptr;
}

std::vector<bool> MemoryStore::exists(std::span<const ObjectKey> keys) {
  std::vector<bool> present;
  present.reserve(keys.size());
  for (const ObjectKey& key : keys) {
    const bool truth = index_.contains(key);
    present.push_back(faults_.on_exists(key, truth));
    if (present.back() == truth) continue;
    sink_.emit(rank_of(key), kNoRequest, FalseAnswer{key, present.back()});
  }
  return present;
}

StoreTicket MemoryStore::get(std::vector<GetItem> items) {
  Batch batch;
  batch.gets.reserve(items.size());
  batch.lease_end = timers_.now() + config_.lease.value_or(Nanoseconds{0});
  Bytes travelling;
  for (GetItem& item : items) {
    const GetFault fault = faults_.on_get(item);
    batch.fault.add(fault.batch);
    Object* object = find(item.key);
    if (object != nullptr) {
      object->leased_until = std::max(object->leased_until, batch.lease_end);
      travelling += available(size_of(object->bytes), item.offset, size_of(item.target));
    }
    const bool leased = object != nullptr && config_.lease.has_value();
    batch.gets.push_back(GetWork{std::move(item), fault, leased});
  }
  return start(std::move(batch), travelling);
}

StoreTicket MemoryStore::put(std::vector<PutItem> items) {
  Batch batch;
  batch.puts.reserve(items.size());
  Bytes travelling;
  for (PutItem& item : items) {
    const PutFault fault = faults_.on_put(item);
    batch.fault.add(fault.batch);
    travelling += size_of(item.payload);
    batch.puts.push_back(PutWork{std::move(item), fault});
  }
  return start(std::move(batch), travelling);
}

StoreTicket MemoryStore::start(Batch batch, Bytes travelling) {
  const StoreTicket ticket = ++last_ticket_;
  const Nanoseconds now = timers_.now();
  link_free_at_ = std::max(now, link_free_at_) + config_.link.transfer(travelling);
  const Nanoseconds due = link_free_at_ + config_.link.latency + batch.fault.delay;
  batches_.emplace(ticket, std::move(batch));
  after(due - now, ticket, &MemoryStore::finish);
  return ticket;
}

void MemoryStore::after(Nanoseconds delay, StoreTicket ticket,
                        void (MemoryStore::*action)(StoreTicket)) {
  timers_.after(delay, [lifeline = lifeline_, ticket, action] {
    if (lifeline->store != nullptr) (lifeline->store->*action)(ticket);
  });
}

void MemoryStore::finish(StoreTicket ticket) {
  const auto found = batches_.find(ticket);
  if (found == batches_.end()) return;  // dropped meanwhile
  Batch& batch = found->second;
  const StoreResult lost{StoreStatus::failed, Bytes{0}};
  for (const GetWork& work : batch.gets) {
    batch.results.push_back(batch.store_lost ? lost : finish_get(work, batch.lease_end));
  }
  for (const PutWork& work : batch.puts) {
    batch.results.push_back(batch.store_lost ? lost : finish_put(work));
  }
  batch.has_effect = true;
  if (batch.fault.late > Nanoseconds{0}) {
    after(batch.fault.late, ticket, &MemoryStore::report);
  } else {
    report(ticket);
  }
}

void MemoryStore::report(StoreTicket ticket) {
  const auto found = batches_.find(ticket);
  if (found == batches_.end()) return;
  Batch& batch = found->second;
  if (batch.fault.reordered && is_overtaken(ticket, last_ticket_)) {
    batch.behind = last_ticket_;
    return;
  }
  mark_done(batch);
  report_held_back();
}

bool MemoryStore::is_overtaken(StoreTicket ticket, StoreTicket last) const {
  return std::any_of(batches_.upper_bound(ticket), batches_.upper_bound(last),
                     [](const auto& b) { return !b.second.done && !b.second.behind; });
}

// Each is told on its own: who is told of two at once may take them in any order.
void MemoryStore::report_held_back() {
  const auto is_due = [&](const auto& entry) {
    const Batch& batch = entry.second;
    return batch.behind && !batch.done && !is_overtaken(entry.first, *batch.behind);
  };
  for (auto due = std::ranges::find_if(batches_, is_due); due != batches_.end();
       due = std::ranges::find_if(batches_, is_due)) {
    mark_done(due->second);
  }
}

void MemoryStore::mark_done(Batch& batch) {
  batch.done = true;
  // NOLINTNEXTLINE(modernize-loop-convert): a listener may add another
  for (std::size_t i = 0; i < listeners_.size(); ++i) listeners_[i]();
}

StoreResult MemoryStore::finish_get(const GetWork& work, Nanoseconds lease_end) {
  const GetItem& item = work.item;
  if (work.fault.status) return {*work.fault.status, Bytes{0}};
  if (work.leased && timers_.now() > lease_end) return {StoreStatus::lease_ended, Bytes{0}};
  const Object* object = find(item.key);
  if (object == nullptr) return {StoreStatus::missing, Bytes{0}};
  const Bytes wanted = size_of(item.target);
  Bytes bytes = available(size_of(object->bytes), item.offset, wanted);
  if (work.fault.short_to) bytes = std::min(bytes, *work.fault.short_to);
  if (bytes > Bytes{0}) {
    std::memcpy(item.target.data(), object->bytes.data() + item.offset.index(), bytes.index());
  }
  if (work.fault.corrupt_bit) flip_bit(item.target.first(bytes.index()), *work.fault.corrupt_bit);
  touch(item.key);
  return {bytes == wanted ? StoreStatus::ok : StoreStatus::short_read, bytes};
}

StoreResult MemoryStore::finish_put(const PutWork& work) {
  const PutItem& item = work.item;
  const RankId rank = rank_of(item.key);
  const Bytes size = size_of(item.payload);
  const bool existed = index_.contains(item.key);
  StoreStatus status = work.fault.status.value_or(StoreStatus::ok);
  if (status == StoreStatus::ok && !existed && !make_room(size)) status = StoreStatus::no_room;
  const bool accepted = status == StoreStatus::ok;
  if (accepted && existed) touch(item.key);
  if (accepted && !existed) {
    objects_.push_back(Object{item.key, {item.payload.begin(), item.payload.end()}, {}});
    index_.emplace(objects_.back().key, std::prev(objects_.end()));
    used_ += size;
  }
  sink_.emit(rank, kNoRequest, StorePut{item.key, accepted && !existed, accepted});
  return {status, accepted ? size : Bytes{0}};
}

std::optional<std::vector<StoreResult>> MemoryStore::poll(StoreTicket ticket) {
  const auto found = batches_.find(ticket);
  CHECK("store.ticket", found != batches_.end());
  if (!found->second.done) return std::nullopt;
  return std::move(batches_.extract(found).mapped().results);
}

void MemoryStore::remove(std::span<const ObjectKey> keys) {
  for (const ObjectKey& key : keys) {
    if (const auto found = index_.find(key); found != index_.end()) erase(found->second);
  }
}

void MemoryStore::on_progress(std::function<void()> action) {
  listeners_.push_back(std::move(action));
}

std::vector<ObjectKey> MemoryStore::keys() const {
  std::vector<ObjectKey> keys;
  keys.reserve(objects_.size());
  for (const Object& object : objects_) keys.push_back(object.key);
  return keys;
}

void MemoryStore::restart(bool keep_data) {
  for (auto& [ticket, batch] : batches_) batch.store_lost = !batch.has_effect;
  if (keep_data) return;
  index_.clear();
  objects_.clear();
  used_ = Bytes{0};
  sink_.emit(RankId{0}, kNoRequest, StoreCleared{});
}

void MemoryStore::drop_batches() {
  batches_.clear();
}

MemoryStore::Object* MemoryStore::find(std::string_view key) {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &*found->second;
}

void MemoryStore::touch(std::string_view key) {
  objects_.splice(objects_.end(), objects_, index_.at(key));
}

bool MemoryStore::make_room(Bytes size) {
  const Nanoseconds now = timers_.now();
  Bytes room = config_.capacity - used_;
  std::vector<Objects::iterator> victims;
  for (auto object = objects_.begin(); room < size && object != objects_.end(); ++object) {
    if (config_.lease && object->leased_until >= now) continue;
    room += size_of(object->bytes);
    victims.push_back(object);
  }
  if (room < size) return false;
  for (auto victim : victims) erase(victim);
  return true;
}

void MemoryStore::erase(Objects::iterator object) {
  index_.erase(object->key);  // before its key moves, which the index only views
  const Object removed = std::move(*object);
  objects_.erase(object);
  used_ -= size_of(removed.bytes);
  sink_.emit(rank_of(removed.key), kNoRequest, StoreRemoved{removed.key});
}

}  // namespace lockstep
