// Memory for one sequence and a way to run a model on it, without pools, device or linker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/random.h"
#include "model/device_segment.h"
#include "model/model.h"

namespace lockstep::model {

inline std::unique_ptr<Model> must_make(const ModelSpec& spec, std::uint64_t seed = 7,
                                        Tokens cache_page = Tokens{4}, Shard shard = {}) {
  Result<std::unique_ptr<Model>> model = make_model(spec, seed, cache_page, shard);
  if (!model) throw std::runtime_error(model.error().message);
  return std::move(*model);
}

inline std::vector<TokenId> random_tokens(const Model& model, std::size_t count,
                                          std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) {
    token = TokenId{static_cast<std::uint32_t>(random.below(model.vocab()))};
  }
  return tokens;
}

// Rows for one sequence of up to `capacity` tokens. Page i lies in row 1 + (stride * i) mod pages,
// so that a stride other than 1 scatters them; every byte that nobody wrote holds 0xa5.
class Sandbox {
 public:
  Sandbox(const Model& model, Tokens page, Tokens capacity, std::size_t stride = 1,
          bool descending = false)
      : model_(model) {
    const auto pages = static_cast<std::size_t>((capacity + page - Tokens{1}) / page);
    for (const Component component : kComponents) {
      const std::size_t i = index(component);
      layouts_[i] = model.layout(component, page, descending);
      const std::size_t rows = (component == Component::mamba ? kSlots : pages) + 1;
      bytes_[i].assign(rows * layouts_[i].row_bytes.index() / 8, 0xa5a5a5a5a5a5a5a5ull);
      if (layouts_[i].row_bytes == Bytes{0}) continue;
      memory_.components[i] = {reinterpret_cast<std::byte*>(bytes_[i].data()), &layouts_[i]};
    }
    memory_.page = page;
    for (std::size_t i = 0; i < pages; ++i) {
      table_.push_back(Row{static_cast<std::uint32_t>(1 + stride * i % pages)});
    }
    swa_table_ = table_;
    if (model.geometry().has_mamba) model.clear_slot(slot(kQ));
  }

  // Memory points into the object itself.
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  static constexpr Row kQ{1};
  static constexpr Row kSnapshot{2};

  // Feeds the next tokens in one forward and returns their outputs.
  std::vector<std::byte> feed(std::span<const TokenId> tokens,
                              std::span<const SnapshotView> snapshots = {}) {
    Segment segment = next(tokens, snapshots);
    std::vector<std::byte> uploaded(device_segment_bytes(segment).index());
    segment.uploaded = uploaded;  // for models whose kernels run on the host's memory
    std::vector<std::byte> scratch(tokens.size() * model_.activation_bytes().index());
    model_.embed(segment, scratch);
    for (std::uint32_t layer = 0; layer < model_.layers().size(); ++layer) {
      model_.run_layer(LayerId{layer}, segment, memory_, scratch);
    }
    std::vector<std::byte> outputs(tokens.size() * model_.output_bytes().index());
    model_.head(segment, scratch, outputs);
    advance(tokens.size());
    return outputs;
  }

  // For who runs a forward by himself: the next tokens as a segment, and that they are computed.
  Segment next(std::span<const TokenId> tokens, std::span<const SnapshotView> snapshots = {}) {
    Segment segment;
    segment.extra_key = extra_key ? std::optional<std::string_view>(*extra_key) : std::nullopt;
    segment.start = length_;
    segment.tokens = tokens;
    segment.full = table_;
    segment.swa = swa_table_;
    segment.q = kQ;
    segment.snapshots = snapshots;
    return segment;
  }
  void advance(std::size_t count) { length_ += Tokens{static_cast<std::int64_t>(count)}; }

  // Feeds `tokens` in forwards of the given sizes, the last one taking the rest.
  std::vector<std::byte> feed_split(std::span<const TokenId> tokens,
                                    const std::vector<std::size_t>& sizes) {
    std::vector<std::byte> outputs;
    std::size_t at = 0;
    const auto part = [&](std::size_t size) {
      const std::vector<std::byte> some = feed(tokens.subspan(at, size));
      outputs.insert(outputs.end(), some.begin(), some.end());
      at += size;
    };
    for (const std::size_t size : sizes) part(size);
    if (at < tokens.size()) part(tokens.size() - at);
    return outputs;
  }

  // The row bytes of one token in one layer, as an attention layer left them.
  std::span<std::byte> row(Component component, std::size_t page) {
    const std::size_t size = layouts_[index(component)].row_bytes.index();
    return {memory_.of(component).base + table_[page].index() * size, size};
  }
  std::span<std::byte> slot(Row slot) {
    const std::size_t size = layouts_[index(Component::mamba)].row_bytes.index();
    return {memory_.of(Component::mamba).base + slot.index() * size, size};
  }
  std::vector<std::byte> state() {
    const std::span<std::byte> bytes = slot(kQ);
    return {bytes.begin(), bytes.end()};
  }
  // All pages in sequence order, one component.
  std::vector<std::byte> pages(Component component) {
    std::vector<std::byte> all;
    if (memory_.of(component).base == nullptr) return all;
    for (std::size_t page = 0; page < table_.size(); ++page) {
      const std::span<std::byte> bytes = row(component, page);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

  // SWA pages wholly below `position` - (W-1) become the trap row, as after a window release.
  void release_window(Tokens position) {
    const Tokens first = position - model_.geometry().window + Tokens{1};
    for (std::size_t page = 0; page < swa_table_.size(); ++page) {
      const Tokens end = memory_.page * static_cast<std::int64_t>(page + 1);
      if (end <= first) swa_table_[page] = kTrapRow;
    }
  }

  Tokens length() const { return length_; }
  // Continues from `length` tokens: later rows will be overwritten, the state is the caller's to
  // set.
  void rewind(Tokens length) { length_ = length; }
  void set_state(std::span<const std::byte> state) { std::ranges::copy(state, slot(kQ).begin()); }
  const Memory& memory() const { return memory_; }
  std::optional<std::string> extra_key;

 private:
  static constexpr std::size_t kSlots = 2;

  const Model& model_;
  std::array<RowLayout, 3> layouts_;
  std::array<std::vector<std::uint64_t>, 3> bytes_;
  Memory memory_;
  std::vector<Row> table_;
  std::vector<Row> swa_table_;
  Tokens length_{0};
};

}  // namespace lockstep::model
