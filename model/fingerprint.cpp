#include "model/fingerprint.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/random.h"
#include "model/paged.h"

namespace lockstep::model {
namespace {

using Word = std::uint64_t;

constexpr Bytes kWord{sizeof(Word)};
constexpr Word kEmpty = 0xe7037ed1a0b428dbull;

constexpr Word absorb(Word hash, Word word) {
  const Word x = (hash ^ word) * 0x9fb21c651e98df25ull;
  return x ^ (x >> 32);
}

template <class... Words>
constexpr Word absorb(Word hash, Word first, Words... rest) {
  return absorb(absorb(hash, first), rest...);
}

constexpr Word mix(Word hash) {
  return SplitMix64(hash).next();
}

// What row(i) is multiplied with in a fold: odd, so that no bit of a row is lost, and different for
// every position.
constexpr Word position_factor(std::int64_t position) {
  return static_cast<Word>(position) * 0x9e3779b97f4a7c15ull | 1;
}

std::span<Word> words(std::span<std::byte> bytes) {
  CHECK("fingerprint.aligned", reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Word) == 0);
  return {reinterpret_cast<Word*>(bytes.data()), bytes.size() / sizeof(Word)};
}

using LayerRows = PagedLayer<Word>;

// fold(t) for t = start, start + 1, ...: a running sum, because a sum modulo 2^64 can also be taken
// back exactly.
//
//   | page | page | page | own page of t |
//        ^      ^      ^   ^ ^ ^ ^          terms; those below the window have left
//        `---- pages_ ----'  `- own_ -'
class Fold {
 public:
  // A window of 0 means no limit. Reads the rows that token `start` sees below itself.
  Fold(const LayerRows& rows, std::int64_t page, std::int64_t window, std::int64_t start)
      : rows_(rows), page_(page), window_(window), start_(start) {
    const std::int64_t first = window == 0 ? 0 : std::max<std::int64_t>(0, start - window + 1);
    own_begin_ = start / page * page;
    for (std::int64_t last = (first / page + 1) * page - 1; last < own_begin_; last += page) {
      pages_ += term(last);
    }
    add_own(std::max(first, own_begin_), start);
  }

  // Takes in row(position) and drops what its window no longer holds. REQUIRES: called for each
  // position in turn.
  Word advance(std::int64_t position, Word row) {
    if (position == own_begin_ + page_) turn_page();
    if (window_ != 0 && position > start_ && position >= window_) drop(position - window_);
    newest_ = row * position_factor(position);
    own_ += newest_;
    return pages_ + own_;
  }

 private:
  Word term(std::int64_t position) { return *rows_.at(position) * position_factor(position); }

  void add_own(std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t count = rows_.contiguous(begin, end);
      const Word* run = rows_.at(begin);
      Word sum = 0;
      for (std::int64_t i = 0; i < count; ++i) sum += run[i] * position_factor(begin + i);
      own_ += sum;
      begin += count;
    }
  }

  void turn_page() {
    pages_ += newest_;
    own_ = 0;
    own_begin_ += page_;
  }

  void drop(std::int64_t position) {
    if (position >= own_begin_) {
      own_ -= term(position);
    } else if ((position + 1) % page_ == 0) {
      pages_ -= term(position);
    }
  }

  LayerRows rows_;  // its own place in the pages, behind the writer's
  std::int64_t page_;
  std::int64_t window_;
  std::int64_t start_;
  std::int64_t own_begin_ = 0;
  Word pages_ = 0;
  Word own_ = 0;
  Word newest_ = 0;
};

// One layer's part of a slot: {fold, count} and {inputs, oldest first, tag}.
struct SlotWords {
  SlotWords(const RowMemory& memory, Row slot, LayerId layer, std::size_t inputs) {
    const LayerPart range = memory.layout->range_of(layer);
    auto* first = reinterpret_cast<Word*>(
        memory.base + slot.index() * memory.layout->row_bytes.index() + range.offset.index());
    all = {first, range.size.index() / sizeof(Word)};
    temporal = all.first(2);
    conv = all.subspan(2, inputs + 1);
  }
  std::span<Word> all;
  std::span<Word> temporal;
  std::span<Word> conv;
};

// Feeds one input and returns the layer's output.
Word recurrent_step(Word key, std::span<Word> temporal, std::span<Word> conv, Word input) {
  const std::size_t inputs = conv.size() - 1;
  Word update = key;
  for (Word word : conv) update = absorb(update, word);
  update = mix(absorb(update, input));
  temporal[0] = mix(absorb(temporal[0], update, temporal[1]));
  temporal[1] += 1;
  for (std::size_t i = 0; i + 1 < inputs; ++i) conv[i] = conv[i + 1];
  if (inputs > 0) conv[inputs - 1] = input;
  conv[inputs] = temporal[1];
  return mix(absorb(~key, input, temporal[0]));
}

}  // namespace

Fingerprint::Fingerprint(const ModelConfig& config, std::uint64_t weight_seed, Tokens cache_page)
    : Model(config, describe(config) + " cache_page=" + std::to_string(cache_page.value()) +
                        " weights=" + std::to_string(weight_seed)),
      cache_page_(cache_page),
      conv_words_(static_cast<std::size_t>(config.conv_width - 1)) {
  CHECK("fingerprint.cache_page", cache_page >= Tokens{1});
  SplitMix64 weights = substream(weight_seed, "weights");
  embedding_key_ = weights.next();
  for (std::uint32_t i = 0; i < layers().size(); ++i) {
    layer_keys_.push_back(weights.next());
    declare_layer(LayerId{i});
  }
}

void Fingerprint::declare_layer(LayerId layer) {
  const LayerShape& shape = layers()[layer.index()];
  if (shape.recurrent) {
    const Bytes conv = kWord * static_cast<std::int64_t>(conv_words_ + 1);
    declare({Component::mamba, layer, Part::temporal, kWord * 2});
    declare({Component::mamba, layer, Part::conv, conv});
  } else {
    const bool full = shape.attention == Attention::full;
    declare({full ? Component::full : Component::swa, layer, Part::kv, kWord});
  }
}

void Fingerprint::embed(const Segment& segment, std::span<std::byte> activations) const {
  const std::span<Word> hidden = words(activations);
  CHECK("fingerprint.activations", hidden.size() == segment.tokens.size());
  const Word adapter =
      segment.extra_key ? substream(embedding_key_, *segment.extra_key).next() : Word{0};
  const Word key = absorb(embedding_key_, adapter);
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = mix(absorb(key, segment.tokens[i].value()));
  }
}

void Fingerprint::run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                            std::span<std::byte> activations) const {
  if (layers()[layer.index()].recurrent) {
    recur(layer, segment, memory, words(activations));
  } else {
    attend(layer, segment, memory, words(activations));
  }
}

void Fingerprint::attend(LayerId layer, const Segment& segment, const Memory& memory,
                         std::span<Word> hidden) const {
  const bool full = layers()[layer.index()].attention == Attention::full;
  const std::int64_t window = full ? 0 : geometry().window.value();
  const bool sees_previous = full || window > 1;
  const Word key = layer_keys_[layer.index()];
  const std::int64_t start = segment.start.value();

  LayerRows rows(memory.of(full ? Component::full : Component::swa),
                 full ? segment.full : segment.swa, memory.page, layer, 1, 0);
  Fold fold(rows, cache_page_.value(), window, start);
  Word previous = sees_previous && start > 0 ? *rows.at(start - 1) : 0;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const std::int64_t position = start + static_cast<std::int64_t>(i);
    const Word below =
        absorb(key, static_cast<Word>(position), segment.tokens[i].value(), hidden[i]);
    const Word row = mix(absorb(below, previous));
    *rows.at(position) = row;
    if (sees_previous) previous = row;
    hidden[i] = mix(absorb(~key, hidden[i], fold.advance(position, row)));
  }
}

void Fingerprint::recur(LayerId layer, const Segment& segment, const Memory& memory,
                        std::span<Word> hidden) const {
  const RowMemory& slots = memory.of(Component::mamba);
  const SlotWords q(slots, segment.q, layer, conv_words_);
  const Word key = layer_keys_[layer.index()];
  auto snapshot = segment.snapshots.begin();
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = recurrent_step(key, q.temporal, q.conv, hidden[i]);
    const Tokens depth = segment.start + Tokens{static_cast<std::int64_t>(i) + 1};
    if (snapshot != segment.snapshots.end() && snapshot->depth == depth) {
      const SlotWords target(slots, snapshot->slot, layer, conv_words_);
      std::copy(q.all.begin(), q.all.end(), target.all.begin());
      ++snapshot;
    }
  }
  CHECK("fingerprint.snapshots", snapshot == segment.snapshots.end());
}

void Fingerprint::head(const Segment&, std::span<const std::byte> activations,
                       std::span<std::byte> outputs) const {
  CHECK("fingerprint.outputs", outputs.size() == activations.size());
  std::copy(activations.begin(), activations.end(), outputs.begin());
}

TokenId Fingerprint::next_token(std::span<const std::byte> output) const {
  Word hidden = 0;
  CHECK("fingerprint.output", output.size() == sizeof hidden);
  std::memcpy(&hidden, output.data(), sizeof hidden);
  return TokenId{static_cast<std::uint32_t>(mix(hidden) % static_cast<Word>(vocab()))};
}

void Fingerprint::clear_slot(std::span<std::byte> slot) const {
  // Every layer has the same number of words, so the order of the layers does not matter.
  const std::span<Word> all = words(slot);
  const std::size_t layer_words = 2 + conv_words_ + 1;
  CHECK("fingerprint.slot", all.size() % layer_words == 0);
  std::fill(all.begin(), all.end(), kEmpty);
  for (std::size_t first = 0; first < all.size(); first += layer_words) {
    all[first + 1] = 0;
    all[first + layer_words - 1] = 0;
  }
}

}  // namespace lockstep::model
