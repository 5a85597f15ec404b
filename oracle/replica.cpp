#include "oracle/replica.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/hash.h"

namespace lockstep::oracle {

namespace {

// The most tokens of one forward of the replica: enough to spread its fixed costs, little enough to
// stay in the caches.
constexpr Tokens kChunk{4096};
constexpr Row kRunningSlot{0};

std::size_t row_bytes(const RowLayout& layout) {
  return layout.row_bytes.index();
}

}  // namespace

std::uint64_t row_digest(std::span<const std::byte> row) {
  return xxh3(row);
}

struct Replica::Sequence {
  Tokens capacity;
  Tokens computed;
  std::array<RowLayout, 3> layouts;
  std::array<std::unique_ptr<std::byte[]>, 3> memory;
  std::unique_ptr<std::byte[]> outputs;
  model::Memory view;

  std::byte* slot(Row row) {
    return memory[index(Component::mamba)].get() + row.index() * slot_bytes();
  }
  std::size_t slot_bytes() const { return row_bytes(layouts[index(Component::mamba)]); }
};

// A record is: FULL row, SWA row, state, outputs of the page. Visits the runs that a page shares
// with its sequence's memory (all but the state): offset in the record, place in the sequence,
// size.
template <class Visit>
void Replica::visit_runs(Sequence& sequence, Pages page, Visit visit) const {
  const std::size_t first_token = page.index() * page_.index();
  for (Component component : {Component::full, Component::swa}) {
    std::byte* const memory = sequence.memory[index(component)].get();
    for (const PartMap& part : parts_[index(component)]) {
      visit(record_offset(component) + part.row_offset,
            memory + part.token_offset * sequence.capacity.index() + first_token * part.entry_bytes,
            page_.index() * part.entry_bytes);
    }
  }
  const std::size_t output_bytes = model_.output_bytes().index();
  visit(record_bytes_ - page_.index() * output_bytes,
        sequence.outputs.get() + first_token * output_bytes, page_.index() * output_bytes);
}

Replica::Replica(const model::Model& model, std::span<const model::Model* const> shards,
                 Tokens page, bool descending, Bytes memo_limit)
    : model_(model),
      page_(page),
      layouts_{model.layout(Component::full, page, descending),
               model.layout(Component::swa, page, descending),
               model.layout(Component::mamba, page, descending)},
      record_bytes_(row_bytes(layouts_[0]) + row_bytes(layouts_[1]) + row_bytes(layouts_[2]) +
                    page.index() * model.output_bytes().index()),
      memo_(Bytes{static_cast<std::int64_t>(record_bytes_)}, memo_limit) {
  for (Component component : {Component::full, Component::swa})
    parts_[index(component)] = map_parts(component);
  if (shards.empty()) ranks_.push_back({layouts_, {}, {}});
  for (const model::Model* shard : shards) {
    RankRows& rows = ranks_.emplace_back();
    for (Component component : kComponents) {
      rows.layouts[index(component)] = shard->layout(component, page, descending);
      rows.cuts[index(component)] = shard->ranges_in_whole(component, page, descending);
    }
  }
}

Replica::~Replica() = default;

// A KV part is an array with one entry per token; the giant page has the same arrays, each
// `capacity` entries long.
std::vector<Replica::PartMap> Replica::map_parts(Component component) const {
  std::vector<LayerPart> ascending = layouts_[index(component)].parts;
  std::stable_sort(ascending.begin(), ascending.end(),
                   [](const LayerPart& a, const LayerPart& b) { return a.layer < b.layer; });
  std::vector<PartMap> maps;
  std::size_t token_offset = 0;
  for (const LayerPart& part : ascending) {
    const std::size_t entry_bytes = part.size.index() / page_.index();
    maps.push_back({part.layer, part.offset.index(), entry_bytes, token_offset});
    token_offset += entry_bytes;
  }
  return maps;
}

void Replica::advance(RequestId request, const Script& script, Tokens end) {
  CHECK("replica.advance", end.index() <= script.tokens.size());
  Sequence& sequence = open(request, script);
  while (sequence.computed < end) {
    if (!take_from_memo(sequence, script))
      compute(sequence, script, next_stop(sequence, script, end));
  }
}

Replica::Sequence& Replica::open(RequestId request, const Script& script) {
  std::unique_ptr<Sequence>& slot = sequences_[request];
  if (slot) return *slot;
  slot = std::make_unique<Sequence>();
  Sequence& sequence = *slot;
  const std::size_t pages = (script.capacity.index() + page_.index() - 1) / page_.index();
  sequence.capacity = page_ * static_cast<std::int64_t>(pages);
  sequence.view.page = sequence.capacity;
  for (Component component : kComponents) {
    const std::size_t c = index(component);
    const bool is_state = component == Component::mamba;
    sequence.layouts[c] =
        is_state ? layouts_[c] : model_.layout(component, sequence.capacity, false);
    const std::size_t rows = is_state ? 1 + kChunk.index() / page_.index() + 1 : 1;
    sequence.memory[c] =
        std::make_unique_for_overwrite<std::byte[]>(rows * row_bytes(sequence.layouts[c]));
    if (row_bytes(sequence.layouts[c]) > 0) {
      sequence.view.components[c] = {sequence.memory[c].get(), &sequence.layouts[c]};
    }
  }
  sequence.outputs = std::make_unique_for_overwrite<std::byte[]>(sequence.capacity.index() *
                                                                 model_.output_bytes().index());
  if (sequence.slot_bytes() > 0)
    model_.clear_slot({sequence.slot(kRunningSlot), sequence.slot_bytes()});
  return sequence;
}

void Replica::close(RequestId request) {
  sequences_.erase(request);
}

bool Replica::take_from_memo(Sequence& sequence, const Script& script) {
  if (sequence.computed % page_ != Tokens{0}) return false;
  const Pages page{sequence.computed / page_};
  if (page.index() >= script.chain.size()) return false;
  const std::span<const std::byte> record = memo_.find(script.chain[page.index()]);
  if (record.empty()) return false;
  visit_runs(sequence, page, [&](std::size_t offset, std::byte* place, std::size_t size) {
    std::memcpy(place, record.data() + offset, size);
  });
  std::memcpy(sequence.slot(kRunningSlot), record.data() + record_offset(Component::mamba),
              sequence.slot_bytes());
  sequence.computed += page_;
  memo_.touch(script.chain[page.index()]);
  return true;
}

// The next page that the memo can serve, or `end`, or as far as one forward goes.
Tokens Replica::next_stop(const Sequence& sequence, const Script& script, Tokens end) const {
  const Tokens limit = std::min(end, sequence.computed + kChunk);
  Pages page{sequence.computed / page_};
  for (++page; page_ * page.value() < limit && page.index() < script.chain.size(); ++page) {
    if (memo_.has(script.chain[page.index()])) return page_ * page.value();
  }
  return limit;
}

void Replica::compute(Sequence& sequence, const Script& script, Tokens end) {
  const Pages first{sequence.computed / page_};
  const Pages behind{end / page_};
  run_model(sequence, script, end);
  sequence.computed = end;
  std::uint32_t slot = kRunningSlot.value();
  for (Pages page = first; page < behind; ++page) record_page(sequence, script, page, Row{++slot});
}

void Replica::run_model(Sequence& sequence, const Script& script, Tokens end) {
  const Tokens begin = sequence.computed;
  const std::size_t count = (end - begin).index();
  std::vector<SnapshotView> snapshots;
  if (model_.geometry().has_mamba) {
    for (Tokens depth = page_ * (begin / page_ + 1); depth <= end; depth += page_) {
      snapshots.push_back({depth, Row{static_cast<std::uint32_t>(snapshots.size() + 1)}});
    }
  }
  const Row giant_page{0};
  model::Segment segment;
  segment.extra_key = script.extra_key;
  segment.start = begin;
  segment.tokens = script.tokens.subspan(begin.index(), count);
  segment.full = {&giant_page, 1};
  segment.swa = {&giant_page, 1};
  segment.q = kRunningSlot;
  segment.snapshots = snapshots;
  activations_.resize(std::max(activations_.size(), count * model_.activation_bytes().index()));
  const std::span<std::byte> activations(activations_.data(),
                                         count * model_.activation_bytes().index());
  model_.embed(segment, activations);
  for (std::uint32_t layer = 0; layer < model_.layers().size(); ++layer) {
    model_.run_layer(LayerId{layer}, segment, sequence.view, activations);
  }
  const std::size_t output_bytes = model_.output_bytes().index();
  model_.head(segment, activations,
              {sequence.outputs.get() + begin.index() * output_bytes, count * output_bytes});
}

void Replica::record_page(Sequence& sequence, const Script& script, Pages page, Row state) {
  const ContentId content = script.chain[page.index()];
  if (memo_.has(content)) return;
  const std::span<std::byte> record = memo_.add(content);
  visit_runs(sequence, page, [&](std::size_t offset, const std::byte* place, std::size_t size) {
    std::memcpy(record.data() + offset, place, size);
  });
  std::memcpy(record.data() + record_offset(Component::mamba), sequence.slot(state),
              sequence.slot_bytes());
  for (RankRows& rows : ranks_) {
    if (content.index() >= rows.digests.size()) rows.digests.resize(content.index() + 1);
    RowDigests& digests = rows.digests[content.index()];
    for (Component component : kComponents) {
      const std::size_t c = index(component);
      const auto whole = record.subspan(record_offset(component), row_bytes(layouts_[c]));
      digests.of[c] = row_digest(cut(rows, component, whole));
    }
    digests.known = true;
  }
}

std::size_t Replica::record_offset(Component component) const {
  std::size_t offset = 0;
  for (std::size_t before = 0; before < index(component); ++before)
    offset += row_bytes(layouts_[before]);
  return offset;
}

std::span<const std::byte> Replica::outputs(RequestId request, Tokens begin, Tokens end) const {
  const Sequence& sequence = *sequences_.at(request);
  CHECK("replica.outputs", begin <= end && end <= sequence.computed);
  const std::size_t output_bytes = model_.output_bytes().index();
  return {sequence.outputs.get() + begin.index() * output_bytes,
          (end - begin).index() * output_bytes};
}

const Replica::RankRows& Replica::rows_of(RankId rank) const {
  return ranks_.size() == 1 ? ranks_.front() : ranks_[rank.index()];
}

std::span<const std::byte> Replica::cut(const RankRows& rows, Component component,
                                        std::span<const std::byte> whole) const {
  const std::vector<ByteRange>& ranges = rows.cuts[index(component)];
  if (ranges.empty()) return whole;
  cut_.clear();
  for (const ByteRange& range : ranges) {
    const auto part = whole.subspan(range.offset.index(), range.size.index());
    cut_.insert(cut_.end(), part.begin(), part.end());
  }
  return cut_;
}

std::optional<RowDifference> Replica::compare(RankId rank, RequestId request, Component component,
                                              std::span<const std::byte> row, Tokens begin,
                                              Tokens end) const {
  const Sequence& sequence = *sequences_.at(request);
  CHECK("replica.compare", begin < end && end <= sequence.computed &&
                               begin / page_ == (end.value() - 1) / page_.value());
  const RankRows& rows = rows_of(rank);
  return rows.cuts[index(component)].empty()
             ? compare_whole(sequence, component, row, begin, end)
             : compare_cut(rows, sequence, component, row, begin, end);
}

std::optional<RowDifference> Replica::compare_whole(const Sequence& sequence, Component component,
                                                    std::span<const std::byte> row, Tokens begin,
                                                    Tokens end) const {
  const std::size_t in_page = (begin % page_).index();
  const std::byte* const memory = sequence.memory[index(component)].get();
  for (const PartMap& part : parts_[index(component)]) {
    const std::byte* expected =
        memory + part.token_offset * sequence.capacity.index() + begin.index() * part.entry_bytes;
    const std::byte* actual = row.data() + part.row_offset + in_page * part.entry_bytes;
    const std::size_t size = (end - begin).index() * part.entry_bytes;
    if (std::memcmp(expected, actual, size) == 0) continue;
    const std::size_t same =
        static_cast<std::size_t>(std::mismatch(expected, expected + size, actual).first - expected);
    return RowDifference{part.layer,
                         begin + Tokens{static_cast<std::int64_t>(same / part.entry_bytes)}};
  }
  return std::nullopt;
}

// Brings the page into the whole model's row, cuts out the rank's, and compares the tokens in it.
std::optional<RowDifference> Replica::compare_cut(const RankRows& rows, const Sequence& sequence,
                                                  Component component,
                                                  std::span<const std::byte> row, Tokens begin,
                                                  Tokens end) const {
  const std::size_t c = index(component);
  const std::size_t in_page = (begin % page_).index();
  const std::size_t count = (end - begin).index();
  whole_row_.assign(row_bytes(layouts_[c]), std::byte{0});
  for (const PartMap& part : parts_[c]) {
    const std::byte* source = sequence.memory[c].get() +
                              part.token_offset * sequence.capacity.index() +
                              begin.index() * part.entry_bytes;
    std::memcpy(whole_row_.data() + part.row_offset + in_page * part.entry_bytes, source,
                count * part.entry_bytes);
  }
  const std::span<const std::byte> expected = cut(rows, component, whole_row_);
  for (const LayerPart& part : rows.layouts[c].parts) {
    const std::size_t entry_bytes = part.size.index() / page_.index();
    for (std::size_t token = 0; token < count; ++token) {
      const std::size_t at = part.offset.index() + (in_page + token) * entry_bytes;
      if (std::ranges::equal(expected.subspan(at, entry_bytes), row.subspan(at, entry_bytes)))
        continue;
      return RowDifference{part.layer, begin + Tokens{static_cast<std::int64_t>(token)}};
    }
  }
  return std::nullopt;
}

std::optional<RowDifference> Replica::first_difference(const RankRows& rows, Component component,
                                                       std::span<const std::byte> whole,
                                                       std::span<const std::byte> actual) const {
  const std::span<const std::byte> expected = cut(rows, component, whole);
  for (const LayerPart& part : rows.layouts[index(component)].parts) {
    const auto range = [&](std::span<const std::byte> row) {
      return row.subspan(part.offset.index(), part.size.index());
    };
    if (!std::ranges::equal(range(expected), range(actual)))
      return RowDifference{part.layer, std::nullopt};
  }
  return std::nullopt;
}

std::optional<RowDifference> Replica::find_difference(RankId rank, Component component,
                                                      ContentId content,
                                                      std::span<const std::byte> row) const {
  const std::span<const std::byte> record = memo_.find(content);
  if (record.empty()) return std::nullopt;
  return first_difference(
      rows_of(rank), component,
      record.subspan(record_offset(component), row_bytes(layouts_[index(component)])), row);
}

std::optional<RowDifference> Replica::compare_state(RankId rank, RequestId request,
                                                    const Script& script,
                                                    std::span<const std::byte> slot,
                                                    Tokens depth) const {
  Sequence& sequence = *sequences_.at(request);
  CHECK("replica.compare_state", depth <= sequence.computed);
  if (depth == sequence.computed) {
    return first_difference(rows_of(rank), Component::mamba,
                            {sequence.slot(kRunningSlot), sequence.slot_bytes()}, slot);
  }
  if (depth % page_ != Tokens{0} || depth == Tokens{0}) return std::nullopt;
  return find_difference(rank, Component::mamba, script.chain[Pages{depth / page_}.index() - 1],
                         slot);
}

const RowDigests* Replica::digests(RankId rank, ContentId content) const {
  const std::vector<RowDigests>& digests = rows_of(rank).digests;
  if (content.index() >= digests.size() || !digests[content.index()].known) return nullptr;
  return &digests[content.index()];
}

std::uint64_t Replica::empty_state_digest(RankId rank) const {
  std::vector<std::byte> slot(row_bytes(layouts_[index(Component::mamba)]));
  model_.clear_slot(slot);
  return row_digest(cut(rows_of(rank), Component::mamba, slot));
}

}  // namespace lockstep::oracle
