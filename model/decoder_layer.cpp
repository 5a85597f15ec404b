#include "model/decoder_layer.h"

#include <algorithm>

#include "core/check.h"
#include "model/convolution.h"
#include "model/kernels.h"
#include "model/mlp.h"
#include "model/recurrent.h"

namespace lockstep::model {
namespace {

using kernels::Index;

// Tokens that go through a layer together: enough to use weights and keys several times, few enough
// to stay in the cache.
constexpr Index kTile = 16;

// Calls body.template operator()<Lanes, kCount>(first) for tiles of outputs that cover [0, count).
template <class Body>
void for_tiles(Index count, const Body& body) {
  Index j = 0;
  for (; j + 64 <= count; j += 64) body.template operator()<Pack8, 8>(j);
  for (; j + 32 <= count; j += 32) body.template operator()<Pack8, 4>(j);
  for (; j + 8 <= count; j += 8) body.template operator()<Pack8, 1>(j);
  for (; j < count; ++j) body.template operator()<float, 1>(j);
}

// Which of a layer's convolutions, in the order of a slot: on K, V, attention, MLP. A recurrent
// mixer's state, in place of them, goes with the first or the third: as ranks have it.
struct ConvRange {
  std::size_t begin;
  std::size_t end;
};
constexpr ConvRange kAll{0, 4};
constexpr ConvRange kOfHeads{0, 2};     // a shard has its own
constexpr ConvRange kOfAllRanks{2, 4};  // every rank has the whole

class DecoderLayer {
 public:
  DecoderLayer(const LayerPlan& plan, const Segment& segment, const Memory& memory)
      : plan_(plan),
        segment_(segment),
        memory_(memory),
        shape_(*plan.shape),
        weights_(*plan.weights),
        tile_(std::min(kTile, static_cast<Index>(segment.tokens.size()))),
        key_conv_(shape_.kv_width(), plan.taps, tile_, weights_.key_conv),
        value_conv_(shape_.kv_width(), plan.taps, tile_, weights_.value_conv),
        attention_conv_(shape_.hidden, plan.taps, tile_, weights_.attention_conv),
        mlp_conv_(shape_.hidden, plan.taps, tile_, weights_.mlp_conv),
        feed_forward_(shape_, weights_, plan.mlp),
        normed_(rows_of(shape_.hidden)),
        query_(rows_of(shape_.query_width())),
        relative_(rows_of(shape_.relative_width())),
        gate_(rows_of(shape_.output_gate ? shape_.query_width() : 0)),
        latent_(rows_of(shape_.latent.rank > 0 ? shape_.latent.width() : 0)),
        mixed_(rows_of(shape_.query_width())),
        update_(rows_of(std::max(shape_.hidden, shape_.kv_width()))) {
    if (plan.recurrent) {
      recurrent_.emplace(*plan.recurrent, shape_, weights_.recurrent, plan.taps, tile_);
      recurrent_update_ = rows_of(shape_.hidden);
    }
  }

  void run(std::span<float> hidden) {
    const auto tokens = static_cast<Index>(segment_.tokens.size());
    CHECK("decoder.hidden", static_cast<Index>(hidden.size()) == tokens * shape_.hidden);
    Index count = 0;
    for (Index first = 0; first < tokens; first += count) {
      count = tile_from(first);
      const Index start = segment_.start.value() + first;
      float* rows = hidden.data() + first * shape_.hidden;
      load_state(kAll);
      norm(weights_.input_norm, rows, count);
      if (recurrent_) recurrent_->run(normed_.data(), count, recurrent_update_.data());
      if (plan_.attention != Attention::none) {
        heads(start, count, attention_conv_.tile());
        add_update(attention_conv_, count, rows);
      }
      if (recurrent_) add_recurrent(count, rows);
      mlp(count, rows);
      save_states(kAll, start, count);
    }
  }

  void run_heads(std::span<const float> hidden, std::span<float> partial) {
    const auto tokens = static_cast<Index>(segment_.tokens.size());
    CHECK("decoder.partial", hidden.size() == partial.size());
    Index count = 0;
    for (Index first = 0; first < tokens; first += count) {
      count = tile_from(first);
      load_state(kOfHeads);
      norm(weights_.input_norm, hidden.data() + first * shape_.hidden, count);
      float* projected = partial.data() + first * shape_.hidden;
      if (plan_.attention != Attention::none) {
        heads(segment_.start.value() + first, count, projected);
      } else if (plan_.shares_recurrent) {
        recurrent_->run(normed_.data(), count, projected);
      } else {
        std::fill(projected, projected + count * shape_.hidden, 0.0f);
      }
      save_states(kOfHeads, segment_.start.value() + first, count);
    }
  }

  void combine(std::span<const std::span<const float>> partials, std::span<float> hidden) {
    const auto tokens = static_cast<Index>(segment_.tokens.size());
    std::vector<const float*> roots(partials.size());
    Index count = 0;
    for (Index first = 0; first < tokens; first += count) {
      count = tile_from(first);
      float* rows = hidden.data() + first * shape_.hidden;
      load_state(kOfAllRanks);
      for (std::size_t p = 0; p < partials.size(); ++p) {
        roots[p] = partials[p].data() + first * shape_.hidden;
      }
      const bool whole_recurrent = recurrent_ && !plan_.shares_recurrent;
      if (whole_recurrent) {
        norm(weights_.input_norm, rows, count);
        recurrent_->run(normed_.data(), count, recurrent_update_.data());
      }
      if (plan_.attention != Attention::none || plan_.shares_recurrent) {
        kernels::sum_tree(roots.data(), static_cast<Index>(roots.size()), count * shape_.hidden,
                          attention_conv_.tile());
        add_update(attention_conv_, count, rows);
      }
      if (whole_recurrent) add_recurrent(count, rows);
      mlp(count, rows);
      save_states(kOfAllRanks, segment_.start.value() + first, count);
    }
  }

 private:
  std::vector<float> rows_of(Index width) const {
    return std::vector<float>(static_cast<std::size_t>(tile_ * width));
  }

  // How many tokens the tile from `first` on has: none is beyond a snapshot, because the state of a
  // recurrence is that of the last token that it has seen.
  Index tile_from(Index first) const {
    Index end = std::min(first + kTile, static_cast<Index>(segment_.tokens.size()));
    for (const SnapshotView& snapshot : segment_.snapshots) {
      const Index depth = snapshot.depth.value() - segment_.start.value();
      if (depth > first) end = std::min(end, depth);
    }
    return end - first;
  }

  void norm(const std::vector<float>& weight, const float* hidden, Index count) {
    norm_rows(hidden, count, shape_.hidden, weight, shape_.norm_eps, normed_.data());
  }

  // Attention as far as the output projection, [count][hidden].
  void heads(Index start, Index count, float* projected) {
    queries(start, count);
    PagedLayer<float> keys = pages(0);
    PagedLayer<float> values = pages(memory_.page.value() * shape_.kv_width());
    keys_and_values(start, count, keys, values);

    AttentionTile tile;
    tile.shape = &shape_;
    tile.bias = plan_.bias;
    const auto dim = static_cast<float>(shape_.head_dim);
    tile.scale = shape_.root_scale ? detmath::rsqrt(dim) : 1.0f / dim;
    tile.window = plan_.window;
    tile.start = start;
    tile.count = count;
    tile.query = query_.data();
    tile.relative = relative_.data();
    tile.output = mixed_.data();
    attend(tile, keys, values, scratch_);

    if (shape_.output_gate) {
      project(weights_.gate, count, shape_.query_width(), gate_.data());
      kernels::gate_outputs(gate_.data(), count * shape_.query_width(), mixed_.data());
    }
    project_head_rows(mixed_.data(), count, {shape_.heads, shape_.kv_heads, shape_.head_dim},
                      weights_.output, shape_.hidden, projected);
  }

  void queries(Index start, Index count) {
    project(weights_.query, count, shape_.query_width(), query_.data());
    project(weights_.relative, count, shape_.relative_width(), relative_.data());
    head_norms(weights_.query_norm, count * shape_.heads, query_.data());
    turn(start, count, shape_.heads, query_.data());
    if (shape_.scaling_strength == 0 || plan_.attention != Attention::full) return;
    // Scores are linear in both, so scaling these scales the scores.
    for (Index row = 0; row < count; ++row) {
      const float factor = score_scaling(start + row);
      scale(factor, shape_.query_width(), query_.data() + row * shape_.query_width());
      scale(factor, shape_.relative_width(), relative_.data() + row * shape_.relative_width());
    }
  }

  void keys_and_values(Index start, Index count, PagedLayer<float>& keys,
                       PagedLayer<float>& values) {
    const float* inputs = normed_.data();
    Index width = shape_.hidden;
    if (shape_.latent.rank > 0) {
      width = shape_.latent.width();
      inputs = latent_.data();
      project(weights_.latent, count, width, latent_.data());
      for (Index row = 0; row < count; ++row) {
        norm_rows(latent_.data() + row * width, 1, shape_.latent.rank, weights_.latent_norm,
                  shape_.latent.eps, latent_.data() + row * width);
      }
    }
    project_rows(inputs, count, width, weights_.key, shape_.kv_width(), key_conv_.tile());
    project_rows(inputs, count, width, weights_.value, shape_.kv_width(), value_conv_.tile());
    key_conv_.run(count, update_.data());
    head_norms(weights_.key_norm, count * shape_.kv_heads, update_.data());
    turn(start, count, shape_.kv_heads, update_.data());
    write(update_.data(), start, count, keys);
    value_conv_.run(count, update_.data());
    write(update_.data(), start, count, values);
  }

  void head_norms(const std::vector<float>& weight, Index heads, float* rows) const {
    if (!shape_.head_norms) return;
    norm_rows(rows, heads, shape_.head_dim, weight, shape_.norm_eps, rows);
  }

  void turn(Index start, Index count, Index heads, float* rows) const {
    if (plan_.rope == nullptr) return;
    for (Index row = 0; row < count; ++row) {
      plan_.rope->rotate(start + row, heads, shape_.head_dim, rows + row * heads * shape_.head_dim);
    }
  }

  float score_scaling(Index position) const {
    const float ratio = static_cast<float>(position + 1) / static_cast<float>(shape_.scaling_from);
    return 1.0f + shape_.scaling_strength * detmath::log(ratio > 1.0f ? ratio : 1.0f);
  }

  static void scale(float factor, Index count, float* values) {
    for (Index i = 0; i < count; ++i) values[i] *= factor;
  }

  void mlp(Index count, float* hidden) {
    if (plan_.mlp == Mlp::none) return;
    norm(weights_.mlp_norm, hidden, count);
    feed_forward_.run(normed_.data(), count, mlp_conv_.tile());
    add_update(mlp_conv_, count, hidden);
  }

  void project(const std::vector<float>& matrix, Index count, Index outputs, float* y) const {
    project_rows(normed_.data(), count, shape_.hidden, matrix, outputs, y);
  }

  void add_update(const Convolution& convolution, Index count, float* hidden) {
    convolution.run(count, update_.data());
    for (Index i = 0; i < count * shape_.hidden; ++i) hidden[i] += update_[i];
  }

  void add_recurrent(Index count, float* hidden) const {
    for (Index i = 0; i < count * shape_.hidden; ++i) hidden[i] += recurrent_update_[i];
  }

  PagedLayer<float> pages(Index skip) const {
    const bool full = plan_.attention == Attention::full;
    return {memory_.of(full ? Component::full : Component::swa),
            full ? segment_.full : segment_.swa,
            memory_.page,
            plan_.layer,
            shape_.kv_width(),
            skip};
  }

  void write(const float* rows, Index start, Index count, PagedLayer<float>& target) const {
    for (Index row = 0; row < count; ++row) {
      const float* source = rows + row * shape_.kv_width();
      std::copy(source, source + shape_.kv_width(), target.at(start + row));
    }
  }

  bool has_state() const { return recurrent_ || !weights_.attention_conv.empty(); }

  // The layer's part of a slot: K, V, attention, MLP inputs, or the recurrent mixer's.
  float* state(Row slot) const {
    const RowMemory& slots = memory_.of(Component::mamba);
    const std::size_t offset = slots.layout->range_of(plan_.layer).offset.index();
    return reinterpret_cast<float*>(slots.base + slot.index() * slots.layout->row_bytes.index() +
                                    offset);
  }

  bool has_recurrent(ConvRange range) const {
    const std::size_t own = plan_.shares_recurrent ? kOfHeads.begin : kOfAllRanks.begin;
    return recurrent_ && range.begin <= own && own < range.end;
  }

  void load_state(ConvRange range) {
    if (!has_state()) return;
    const float* at = state(segment_.q);
    if (recurrent_) {
      if (has_recurrent(range)) recurrent_->load(at);
      return;
    }
    visit(range, [&](Convolution& convolution, Index offset) { convolution.load(at + offset); });
  }

  void save_states(ConvRange range, Index start, Index count) {
    if (!has_state()) return;
    save_state(range, count, segment_.q);
    for (const SnapshotView& snapshot : segment_.snapshots) {
      const Index tokens = snapshot.depth.value() - start;
      if (tokens > 0 && tokens <= count) save_state(range, tokens, snapshot.slot);
    }
  }

  void save_state(ConvRange range, Index tokens, Row slot) {
    float* at = state(slot);
    if (recurrent_) {
      if (has_recurrent(range)) recurrent_->save(tokens, at);
      return;
    }
    visit(range, [&](const Convolution& convolution, Index offset) {
      convolution.save(tokens, at + offset);
    });
  }

  // With the offset of each one's inputs in the layer's part of a slot.
  template <class Visit>
  void visit(ConvRange range, Visit visit_one) {
    const std::array<Convolution*, 4> all{&key_conv_, &value_conv_, &attention_conv_, &mlp_conv_};
    Index offset = 0;
    for (std::size_t i = 0; i < all.size(); offset += all[i]->state_size(), ++i) {
      if (i >= range.begin && i < range.end) visit_one(*all[i], offset);
    }
  }

  const LayerPlan& plan_;
  const Segment& segment_;
  const Memory& memory_;
  const DecoderShape& shape_;
  const LayerWeights& weights_;
  Index tile_;  // the most tokens at a time
  Convolution key_conv_;
  Convolution value_conv_;
  Convolution attention_conv_;
  Convolution mlp_conv_;
  FeedForward feed_forward_;
  std::optional<RecurrentMixer> recurrent_;
  std::vector<float> recurrent_update_;
  std::vector<float> normed_;
  std::vector<float> query_;
  std::vector<float> relative_;
  std::vector<float> gate_;
  std::vector<float> latent_;
  std::vector<float> mixed_;
  std::vector<float> update_;
  std::vector<float> scratch_;
};

}  // namespace

void run_decoder_layer(const LayerPlan& plan, const Segment& segment, const Memory& memory,
                       std::span<float> hidden) {
  DecoderLayer(plan, segment, memory).run(hidden);
}

void run_decoder_heads(const LayerPlan& plan, const Segment& segment, const Memory& memory,
                       std::span<const float> hidden, std::span<float> partial) {
  DecoderLayer(plan, segment, memory).run_heads(hidden, partial);
}

void combine_decoder_heads(const LayerPlan& plan, const Segment& segment, const Memory& memory,
                           std::span<const std::span<const float>> partials,
                           std::span<float> hidden) {
  DecoderLayer(plan, segment, memory).combine(partials, hidden);
}

std::int64_t conv_state_bytes(const DecoderShape& shape, std::int64_t taps) {
  if (!shape.convolutions) return 0;
  const std::int64_t channels = 2 * shape.kv_width() + 2 * shape.hidden;
  return (taps - 1) * channels * static_cast<std::int64_t>(sizeof(float));
}

void norm_rows(const float* x, std::int64_t rows, std::int64_t width,
               const std::vector<float>& weight, float eps, float* y) {
  for (Index row = 0; row < rows; ++row) {
    kernels::rms_norm(x + row * width, weight.data(), width, eps, y + row * width);
  }
}

void project_head_rows(const float* x, std::int64_t rows, HeadShape heads,
                       const std::vector<float>& matrix, std::int64_t outputs, float* y) {
  for (Index row = 0; row < rows; ++row) {
    for_tiles(outputs, [&]<class Lanes, Index kCount>(Index j) {
      kernels::project_heads<Lanes, kCount>(x + row * heads.heads * heads.head_dim, heads.heads,
                                            heads.head_dim, matrix.data() + j, outputs,
                                            y + row * outputs + j);
    });
  }
}

void project_rows(const float* x, std::int64_t rows, std::int64_t inputs,
                  const std::vector<float>& matrix, std::int64_t outputs, float* y) {
  for (Index row = 0; row < rows; ++row) {
    for_tiles(outputs, [&]<class Lanes, Index kCount>(Index j) {
      kernels::project<Lanes, kCount>(x + row * inputs, inputs, matrix.data() + j, outputs,
                                      y + row * outputs + j);
    });
  }
}

}  // namespace lockstep::model
