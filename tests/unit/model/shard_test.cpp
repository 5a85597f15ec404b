// Ranks that share the heads of a model compute what one rank computes, bit for bit, and each holds
// its heads' part of the same rows.
#include "model/shard.h"

#include <deque>

#include "catch.h"
#include "model_families.h"
#include "model_sandbox.h"

namespace lockstep::model {
namespace {

constexpr Tokens kPage{4};
constexpr Tokens kCapacity{64};

ModelSpec pico() {
  ModelSpec spec;
  spec.preset = "inkling-pico";
  return spec;
}

// All ranks of one sequence.
class Ranks {
 public:
  Ranks(const ModelSpec& spec, std::uint32_t count, bool descending) {
    for (std::uint32_t i = 0; i < count; ++i) {
      models_.push_back(must_make(spec, 7, kPage, {i, count}));
      memory_.emplace_back(*models_.back(), kPage, kCapacity, 1, descending);
    }
  }

  // The outputs of every rank.
  std::vector<std::vector<std::byte>> feed(std::span<const TokenId> tokens,
                                           std::span<const SnapshotView> snapshots) {
    const std::size_t ranks = models_.size();
    std::vector<Segment> segments;
    std::vector<std::vector<std::byte>> hidden;
    std::vector<std::vector<std::byte>> partial;
    for (std::size_t r = 0; r < ranks; ++r) {
      segments.push_back(memory_[r].next(tokens, snapshots));
      hidden.emplace_back(tokens.size() * models_[r]->activation_bytes().index());
      partial.emplace_back(tokens.size() * models_[r]->partial_bytes().index());
      models_[r]->embed(segments[r], hidden[r]);
    }
    const std::vector<std::span<const std::byte>> partials(partial.begin(), partial.end());
    for (std::uint32_t layer = 0; layer < models_[0]->layers().size(); ++layer) {
      for (std::size_t r = 0; r < ranks; ++r) {
        models_[r]->run_heads(LayerId{layer}, segments[r], memory_[r].memory(), hidden[r],
                              partial[r]);
      }
      for (std::size_t r = 0; r < ranks; ++r) {
        models_[r]->combine_heads(LayerId{layer}, segments[r], memory_[r].memory(), partials,
                                  hidden[r]);
      }
    }
    std::vector<std::vector<std::byte>> outputs;
    for (std::size_t r = 0; r < ranks; ++r) {
      outputs.emplace_back(tokens.size() * models_[r]->output_bytes().index());
      models_[r]->head(segments[r], hidden[r], outputs[r]);
      memory_[r].advance(tokens.size());
    }
    return outputs;
  }

  const Model& model(std::size_t rank) const { return *models_[rank]; }
  Sandbox& memory(std::size_t rank) { return memory_[rank]; }

 private:
  std::vector<std::unique_ptr<Model>> models_;
  std::deque<Sandbox> memory_;
};

std::vector<std::byte> cut(std::span<const std::byte> row, const std::vector<ByteRange>& ranges) {
  std::vector<std::byte> part;
  for (const ByteRange& range : ranges) {
    const auto bytes = row.subspan(range.offset.index(), range.size.index());
    part.insert(part.end(), bytes.begin(), bytes.end());
  }
  return part;
}

std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

void check(const ModelSpec& spec, std::uint32_t ranks, bool descending) {
  const std::unique_ptr<Model> whole = must_make(spec, 7, kPage);
  INFO(whole->name() << " on " << ranks);
  Sandbox alone(*whole, kPage, kCapacity, 1, descending);
  Ranks shared(spec, ranks, descending);
  const std::vector<TokenId> tokens = random_tokens(*whole, 45, 3);
  const std::span<const TokenId> all(tokens);
  const SnapshotView snapshot{Tokens{24}, Sandbox::kSnapshot};

  // The last forward ends in the middle of a page; the second one crosses a tile of 16 tokens.
  const std::vector<std::span<const TokenId>> forwards{all.first(3), all.subspan(3, 37),
                                                       all.subspan(40, 1), all.subspan(41)};
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    const std::span<const SnapshotView> snapshots(&snapshot, i == 1 ? 1 : 0);
    const std::vector<std::byte> expected = alone.feed(forwards[i], snapshots);
    for (const std::vector<std::byte>& outputs : shared.feed(forwards[i], snapshots)) {
      REQUIRE(outputs == expected);
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Model& shard = shared.model(rank);
    Sandbox& memory = shared.memory(rank);
    for (Component component : {Component::full, Component::swa}) {
      if (whole->layout(component, kPage, descending).row_bytes == Bytes{0}) continue;
      const auto ranges = shard.ranges_in_whole(component, kPage, descending);
      for (std::size_t page = 0; page < 11; ++page) {  // the whole ones
        REQUIRE(copy(memory.row(component, page)) == cut(alone.row(component, page), ranges));
      }
    }
    const auto ranges = shard.ranges_in_whole(Component::mamba, kPage, descending);
    REQUIRE(memory.state() == cut(alone.slot(Sandbox::kQ), ranges));
    REQUIRE(copy(memory.slot(Sandbox::kSnapshot)) == cut(alone.slot(Sandbox::kSnapshot), ranges));
  }
}

}  // namespace

TEST_CASE("two ranks compute what one computes") {
  check(pico(), 2, false);
}

TEST_CASE("four ranks compute what one computes, with objects in either order") {
  check(pico(), 4, false);
  check(pico(), 4, true);
}

TEST_CASE("ranks of every family compute what one computes, and hold their heads of the state") {
  for (const ModelSpec& family : families()) {
    for (const std::uint32_t ranks : {2u, 4u}) {
      if (must_make(family)->splits_into(ranks)) check(family, ranks, ranks == 4);
    }
  }
  for (const ModelSpec& preset : family_presets()) REQUIRE(must_make(preset)->splits_into(4));
}

// mamba2-nano: 3 layers of 8 heads x 8 channels x 16 elements and 3 inputs of 64 + 2 * 4 * 16
// channels. Every head has its group's rank.
TEST_CASE("a rank holds its heads of a recurrent state, or all of it where they are not shared") {
  ModelSpec spec;
  spec.preset = "mamba2-nano";
  const auto bytes = [&](Shard shard) {
    return must_make(spec, 7, kPage, shard)->layout(Component::mamba, kPage, false).row_bytes;
  };
  REQUIRE(bytes({}) == Bytes{3 * (8 * 8 * 16 + 3 * 192) * 4});
  REQUIRE(bytes({3, 4}) == Bytes{3 * (2 * 8 * 16 + 3 * 48) * 4});
  // Short convolutions have no heads: every rank has the 2 inputs of 32 channels of 3 layers.
  spec.preset = "lfm2-nano";
  REQUIRE(bytes({}) == Bytes{3 * 2 * 32 * 4});
  REQUIRE(bytes({3, 4}) == bytes({}));
}

// inkling-pico: 4 KV heads of dim 4, hidden 32, 4 taps, fp32, pages of 4 tokens. A FULL row has 2
// layers of K and V: 2 * 2 * 4 tokens * 16 floats = 1024 bytes; a slot has 4 layers of 3 inputs of
// 16 + 16 + 32 + 32 floats = 4608 bytes, of which each of 4 ranks holds 4 + 4 + 32 + 32.
TEST_CASE("rows are split by KV heads, and the inputs that every rank has are whole") {
  const std::unique_ptr<Model> shard = must_make(pico(), 7, kPage, {3, 4});
  REQUIRE(shard->layout(Component::full, kPage, false).row_bytes == Bytes{256});
  REQUIRE(shard->layout(Component::mamba, kPage, false).row_bytes == Bytes{4 * 3 * 72 * 4});
  const auto ranges = shard->ranges_in_whole(Component::full, kPage, false);
  REQUIRE(ranges.size() == 16);  // one per layer, K or V, and token
  REQUIRE(ranges[1].offset == Bytes{(16 + 12) * 4});
  REQUIRE(ranges[1].size == Bytes{16});
}

TEST_CASE("heads are shared by as many ranks as divide them") {
  const std::unique_ptr<Model> model = must_make(pico());
  REQUIRE(model->splits_into(2));
  REQUIRE(model->splits_into(4));
  REQUIRE(!model->splits_into(3));
  REQUIRE(!model->splits_into(8));
  ModelSpec words;
  words.preset = "fingerprint";
  REQUIRE(!must_make(words)->splits_into(2));
}

}  // namespace lockstep::model
