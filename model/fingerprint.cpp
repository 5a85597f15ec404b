#include "model/fingerprint.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/random.h"
#include "model/fingerprint_arithmetic.h"
#include "model/paged.h"

namespace lockstep::model {
namespace {

using fingerprint::absorb;
using fingerprint::kEmpty;
using fingerprint::mix;
using fingerprint::Word;

constexpr Bytes kWord{sizeof(Word)};

using LayerRows = PagedLayer<Word>;

std::span<Word> words(std::span<std::byte> bytes) {
  CHECK("fingerprint.aligned", reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Word) == 0);
  return {reinterpret_cast<Word*>(bytes.data()), bytes.size() / sizeof(Word)};
}

using LayerRows = PagedLayer<Word>;

// One layer's part of a slot: {fold, count} and {inputs, oldest first, tag}.
std::span<Word> slot_words(const RowMemory& memory, Row slot, LayerId layer) {
  const LayerPart range = memory.layout->range_of(layer);
  auto* first = reinterpret_cast<Word*>(
      memory.base + slot.index() * memory.layout->row_bytes.index() + range.offset.index());
  return {first, range.size.index() / sizeof(Word)};
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

std::uint64_t Fingerprint::embedding_key_of(const Segment& segment) const {
  const Word adapter =
      segment.extra_key ? substream(embedding_key_, *segment.extra_key).next() : Word{0};
  return absorb(embedding_key_, adapter);
}

void Fingerprint::embed(const Segment& segment, std::span<std::byte> activations) const {
  const std::span<Word> hidden = words(activations);
  CHECK("fingerprint.activations", hidden.size() == segment.tokens.size());
  const Word key = embedding_key_of(segment);
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
  LayerRows rows(memory.of(full ? Component::full : Component::swa),
                 full ? segment.full : segment.swa, memory.page, layer, 1, 0);
  fingerprint::attend(
      layer_keys_[layer.index()], rows, cache_page_.value(), window, segment.start.value(),
      std::ssize(hidden), [&](std::int64_t i) { return segment.tokens[i].value(); }, hidden.data());
}

void Fingerprint::recur(LayerId layer, const Segment& segment, const Memory& memory,
                        std::span<Word> hidden) const {
  const RowMemory& slots = memory.of(Component::mamba);
  const std::span<Word> q = slot_words(slots, segment.q, layer);
  const Word key = layer_keys_[layer.index()];
  auto snapshot = segment.snapshots.begin();
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = fingerprint::recurrent_step(key, q.data(), conv_words(), hidden[i]);
    const Tokens depth = segment.start + Tokens{static_cast<std::int64_t>(i) + 1};
    for (; snapshot != segment.snapshots.end() && snapshot->depth == depth; ++snapshot) {
      std::ranges::copy(q, slot_words(slots, snapshot->slot, layer).begin());
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
