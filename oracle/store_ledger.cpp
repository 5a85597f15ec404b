#include "oracle/store_ledger.h"

#include <algorithm>
#include <charconv>

#include "oracle/replica.h"

namespace lockstep::oracle {

namespace {

std::optional<std::byte> parse_hex_byte(std::string_view digits) {
  unsigned value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<std::byte>(value);
}

std::optional<std::uint32_t> parse_number(std::string_view digits) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<PageHash> parse_hash(std::string_view hex) {
  PageHash hash;
  if (hex.size() != hash.bytes.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < hash.bytes.size(); ++i) {
    const std::optional<std::byte> byte = parse_hex_byte(hex.substr(2 * i, 2));
    if (!byte) return std::nullopt;
    hash.bytes[i] = *byte;
  }
  return hash;
}

}  // namespace

std::optional<ObjectName> parse_object_key(std::string_view key) {
  const std::size_t first = key.find('/');
  const std::size_t second = key.find('/', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view component_name = key.substr(first + 1, second - first - 1);
  const std::string_view place = key.substr(second + 1);
  const std::size_t of = place.find("of");
  if (of == std::string_view::npos) return std::nullopt;
  const std::optional<PageHash> hash = parse_hash(key.substr(0, first));
  const std::optional<std::uint32_t> rank = parse_number(place.substr(0, of));
  const std::optional<std::uint32_t> ranks = parse_number(place.substr(of + 2));
  const auto component =
      std::find_if(kComponents.begin(), kComponents.end(),
                   [&](Component candidate) { return name(candidate) == component_name; });
  if (!hash || !rank || !ranks || component == kComponents.end()) return std::nullopt;
  return ObjectName{*hash, *component, RankId{*rank}, *ranks};
}

StoreLedger::StoreLedger(const ContentTable& contents, std::size_t ranks) : contents_(contents) {
  for (std::size_t rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>());
}

bool StoreLedger::Rank::has(Component component, ContentId content) const {
  const std::vector<ContentState>& states = shelves[index(component)].states;
  return content.index() < states.size() && states[content.index()].present;
}

bool StoreLedger::Answers::has(Component component, ContentId content) const {
  const auto claim = claims.find({component, content});
  return claim == claims.end() ? truth.has(component, content) : claim->second;
}

StoreLedger::ContentState& StoreLedger::Shelf::state(ContentId content) {
  if (content.index() >= states.size()) states.resize(content.index() + 1);
  return states[content.index()];
}

const StoreLedger::ContentState* StoreLedger::find_state(RankId rank, Component component,
                                                         ContentId content) const {
  const std::vector<ContentState>& states = ranks_[rank.index()]->shelves[index(component)].states;
  return content.index() < states.size() ? &states[content.index()] : nullptr;
}

bool StoreLedger::was_accepted(RankId rank, Component component, ContentId content) const {
  const ContentState* state = find_state(rank, component, content);
  return state != nullptr && state->accepted;
}

bool StoreLedger::is_excused(RankId rank, Component component, ContentId content) const {
  const ContentState* state = find_state(rank, component, content);
  return state != nullptr && state->lost && !state->present;
}

const StoredObject* StoreLedger::object(RankId rank, Component component,
                                        const PageHash& hash) const {
  const auto& objects = ranks_[rank.index()]->shelves[index(component)].objects;
  const auto found = objects.find(hash);
  return found == objects.end() ? nullptr : &found->second;
}

void StoreLedger::apply(const Event& event, const RankLedger& ledger,
                        std::span<const Inspector* const> inspectors) {
  forget_answers(event);
  if (const auto* false_answer = std::get_if<FalseAnswer>(&event.body)) answer(*false_answer);
  if (const auto* queued = std::get_if<OffloadQueued>(&event.body))
    queue(event.rank, *queued, ledger);
  if (const auto* finished = std::get_if<OffloadFinished>(&event.body))
    finish(event.rank, *finished);
  if (const auto* put_event = std::get_if<StorePut>(&event.body)) put(*put_event, inspectors);
  if (const auto* removed = std::get_if<StoreRemoved>(&event.body)) remove(removed->key);
  if (std::holds_alternative<StoreCleared>(event.body)) clear();
}

void StoreLedger::queue(RankId rank, const OffloadQueued& queued, const RankLedger& ledger) {
  const auto offload = ledger.offloads().find(queued.offload);
  if (offload == ledger.offloads().end()) return;
  Rank& owner = *ranks_[rank.index()];
  owner.offloads[queued.offload] = offload->second;
  for (std::size_t i = 0; i < queued.transfers.size(); ++i) {
    const TransferView& view = queued.transfers[i];
    const TransferPart& part = offload->second.parts[i];
    const std::size_t count = std::min(view.hashes.size(), part.rows.size());
    for (std::size_t j = 0; j < count; ++j) {
      // What counts is what the row holds, whatever the linker calls it.
      const ContentId held = ledger.row(view.component, part.rows[j]).content;
      owner.shelves[index(view.component)].sources[view.hashes[j]] = {
          held == kNoContent ? part.contents[j] : held, part.rows[j]};
    }
  }
}

void StoreLedger::finish(RankId rank, const OffloadFinished& finished) {
  Rank& owner = *ranks_[rank.index()];
  const auto offload = owner.offloads.find(finished.offload);
  if (offload == owner.offloads.end()) return;
  if (!finished.good) mark_failed(owner, offload->second);
  owner.offloads.erase(offload);
}

void StoreLedger::mark_failed(Rank& rank, const TransferRecord& offload) {
  for (const TransferPart& part : offload.parts) {
    for (ContentId content : part.contents) {
      if (content != kNoContent) rank.shelves[index(part.component)].state(content).lost = true;
    }
  }
}

void StoreLedger::abandon_puts() {
  for (const auto& rank : ranks_) {
    for (const auto& [id, offload] : rank->offloads) mark_failed(*rank, offload);
    rank->offloads.clear();
    for (Shelf& shelf : rank->shelves) shelf.sources.clear();
  }
}

StoreLedger::Shelf* StoreLedger::shelf(const ObjectName& name) {
  if (name.ranks != ranks_.size() || name.rank.index() >= ranks_.size()) return nullptr;
  return &ranks_[name.rank.index()]->shelves[index(name.component)];
}

void StoreLedger::put(const StorePut& put, std::span<const Inspector* const> inspectors) {
  const std::optional<ObjectName> name = parse_object_key(put.key);
  Shelf* const target = name ? shelf(*name) : nullptr;
  if (target == nullptr) return;
  const auto source = target->sources.find(name->hash);
  const std::optional<ContentId> named = contents_.find(name->hash);
  StoredObject object;
  if (source != target->sources.end()) {
    object.content = source->second.content;
    object.digest =
        row_digest(inspectors[name->rank.index()]->row_bytes(name->component, source->second.row));
    target->sources.erase(source);
  } else if (named) {
    object.content = *named;
  }
  if (object.content == kNoContent) return;
  ContentState& state = target->state(object.content);
  if (!put.accepted) {
    state.lost = true;
    return;
  }
  state.accepted = true;
  if (!put.stored) return;
  ++version_;
  state.present = true;
  state.lost = false;
  target->objects[name->hash] = object;
}

void StoreLedger::remove(std::string_view key) {
  const std::optional<ObjectName> name = parse_object_key(key);
  Shelf* const target = name ? shelf(*name) : nullptr;
  if (target == nullptr) return;
  const auto found = target->objects.find(name->hash);
  if (found == target->objects.end()) return;
  ++version_;
  ContentState& state = target->state(found->second.content);
  state.present = false;
  state.lost = true;
  target->objects.erase(found);
}

void StoreLedger::answer(const FalseAnswer& answer) {
  const std::optional<ObjectName> name = parse_object_key(answer.key);
  const std::optional<ContentId> content = name ? contents_.find(name->hash) : std::nullopt;
  if (!content || shelf(*name) == nullptr) return;
  ranks_[name->rank.index()]->answers.claims[{name->component, *content}] = answer.present;
}

// Answers are given right before the LOOKUP that asked is reported, and hold for that one.
void StoreLedger::forget_answers(const Event& event) {
  if (std::holds_alternative<FalseAnswer>(event.body) ||
      std::holds_alternative<LookedUp>(event.body))
    return;
  for (const auto& rank : ranks_) rank->answers.claims.clear();
}

void StoreLedger::clear() {
  ++version_;
  for (const auto& rank : ranks_) {
    for (Shelf& shelf : rank->shelves) {
      shelf.objects.clear();
      for (ContentState& state : shelf.states) {
        state.lost = state.lost || state.present;
        state.present = false;
      }
    }
  }
}

}  // namespace lockstep::oracle
