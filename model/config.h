// What a model file says: the shape of a decoder, before weights. A plain value that the kernels
// and the fp64 reference both read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "model/spec.h"

namespace lockstep::model {

// What a layer mixes tokens with. `recurrent` is the fingerprint model's stand-in for every
// recurrent mixer; full_mamba2 runs both on the same input and adds what they give.
enum class Mixer { full, swa, recurrent, mamba2, gdn, kda, shortconv, full_mamba2 };

enum class Arithmetic { fingerprint, inkling };

// Properties of the cached state that decide whether a row can be copied as it is (semantics of the
// start-up checks).
struct StateProperties {
  bool kv_scale = false;
  bool virtual_slots = false;
  std::string state_dtype = "float32";
  std::vector<std::string> extra_slot_state;
  bool contiguous_rows = true;
};

// What a layer has behind its mixer.
enum class Mlp { none, dense, experts };
// down(silu(gate x) * (up x)), or down(relu(up x)^2).
enum class Activation { gated_silu, squared_relu };

// How a layer with experts weighs them. Scores are the sigmoid or the softmax of the router's
// logits; the experts with the largest score + bias are chosen; a chosen one's weight is its score
// over the sum of the scores of the chosen ones, times the router's scale.
enum class RouterScore { sigmoid, softmax };
// A shared expert is always run. Its weight: its own score, which is then part of the sum; the
// sigmoid of a logit of its own; or 1.
enum class SharedWeight { scored, gated, one };

struct ExpertShape {
  std::int64_t routed = 0;
  std::int64_t chosen = 0;  // of the routed ones
  std::int64_t shared = 0;
  std::int64_t width = 0;         // of a routed expert's MLP
  std::int64_t shared_width = 0;  // of a shared expert's
  RouterScore score = RouterScore::sigmoid;
  SharedWeight shared_weight = SharedWeight::scored;

  // Columns of the router's matrix.
  std::int64_t logits() const { return routed + (shared_weight == SharedWeight::one ? 0 : shared); }
};

// Keys and values from a normed latent vector of `rank` elements, with `shared` more elements that
// are keys of every head as they are. None if rank is 0.
struct LatentShape {
  std::int64_t rank = 0;
  std::int64_t shared = 0;
  float eps = 0;  // of its norm
  std::int64_t width() const { return rank + shared; }
};

struct HeadShape {
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t head_dim = 0;
};

// Mamba2: heads of `head_dim` channels with `state` elements each; neighbouring heads share one of
// `groups` input and output vectors.
struct Mamba2Shape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t state = 0;
  std::int64_t groups = 0;  // divides heads
  bool conv_bias = false;
  bool norm = false;  // of the gated output, per group

  std::int64_t channels() const { return heads * head_dim; }
};

// The delta rules GDN and KDA: a state of value_dim rows of key_dim elements per value head;
// neighbouring value heads share a key head. KDA has as many key heads as value heads.
struct DeltaShape {
  std::int64_t key_heads = 0;  // divides value_heads
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t rank = 0;  // KDA: of its decay and of its gate

  std::int64_t key_width() const { return key_heads * key_dim; }
  std::int64_t value_width() const { return value_heads * value_dim; }
};

// The sizes of a recurrent mixer. Its inputs go through one projection; some neighbouring columns
// of that go through a convolution, whose last inputs are in the slot behind the temporal state.
struct RecurrentSizes {
  std::int64_t projected = 0;
  std::int64_t conv_begin = 0;
  std::int64_t conv_channels = 0;
  std::int64_t temporal = 0;  // elements of the state
  std::int64_t output = 0;    // before the output projection
};

// The sizes of a numeric decoder and what its layers have; all zero for the fingerprint model. What
// a default says is Inkling's.
struct DecoderShape {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t head_dim = 0;
  std::int64_t intermediate = 0;  // of the MLP
  std::int64_t relative_dim = 0;  // of a head's relative state, which mixes the bias profiles
  std::int64_t full_extent = 0;   // distances with a bias in a full layer; 0: twice the window
  float norm_eps = 0;
  float logit_divisor = 0;  // of the final hidden state

  bool embedding_norm = true;
  bool head_norms = true;    // of queries and keys, per head
  bool convolutions = true;  // on keys, values, attention and MLP output
  // Scores are q.k / head_dim, or q.k / sqrt(head_dim).
  bool root_scale = false;
  bool output_gate = false;       // attention output * sigmoid(gate x)
  std::int64_t rotary_dim = 0;    // the first elements of a head, which turn with the position
  float rope_theta = 0;           // pair i turns by position * theta^(-2i / rotary_dim)
  std::int64_t scaling_from = 0;  // full layers, from this position on: scores grow by the log
  float scaling_strength = 0;     // 1 + strength * ln((t + 1) / from); 0: they do not
  LatentShape latent = {};
  std::optional<HeadShape> swa_heads = {};  // of sliding-window layers, where they differ
  Activation activation = Activation::gated_silu;
  ExpertShape experts = {};
  Mamba2Shape mamba2 = {};
  DeltaShape delta = {};

  std::int64_t query_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t relative_width() const { return heads * relative_dim; }
};

struct ModelConfig {
  std::string name;  // of the preset, or the file it was read from
  Arithmetic arithmetic = Arithmetic::fingerprint;
  std::vector<Mixer> layers;
  Tokens window;       // token t sees t-window+1 .. t in a sliding-window layer
  Tokens state_chunk;  // see core/geometry.h
  std::int64_t vocab = 0;
  std::int64_t conv_width = 0;  // taps; a slot keeps the last conv_width - 1 inputs
  StateProperties state;
  DecoderShape shape;
  std::vector<Mlp> mlps;  // of each layer; empty: all dense

  Mlp mlp(LayerId layer) const { return mlps.empty() ? Mlp::dense : mlps[layer.index()]; }
  // The shape with the heads of this layer.
  DecoderShape shape_of(LayerId layer) const;
  // The recurrent mixer of a layer: mamba2, gdn, kda, shortconv; none.
  std::optional<Mixer> recurrent(LayerId layer) const;

  // How many distances, from 0 up, have a relative bias in a full layer and in any layer.
  std::int64_t full_extent() const {
    return shape.full_extent != 0 ? shape.full_extent : 2 * window.value();
  }
  std::int64_t bias_extent(LayerId layer) const {
    return layers[layer.index()] == Mixer::swa ? window.value() : full_extent();
  }
};

RecurrentSizes recurrent_sizes(const DecoderShape& shape, Mixer mixer);

inline constexpr std::size_t kMaxLayers = 512;
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxVocab = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxConvWidth = 64;
inline constexpr std::int64_t kMaxWidth = std::int64_t{1} << 16;
inline constexpr std::int64_t kMaxHeadDim = std::int64_t{1} << 12;
inline constexpr std::int64_t kMaxExperts = std::int64_t{1} << 12;

// Reads a model file. An error names `source`, the JSON pointer, what was found and what was
// expected.
Result<ModelConfig> parse_model_config(std::string_view text, std::string_view source);

// The preset or file that `spec` names, with its overrides applied and every value checked.
// REQUIRES: it names no checkpoint.
Result<ModelConfig> resolve_model_config(const ModelSpec& spec);
// The overrides that a configuration takes whatever its weights are.
void merge_state(const ModelSpec& spec, ModelConfig& config);

std::string_view mixer_name(Mixer mixer);
// The mixers by the names that model files and scenarios use; an error names the place in `source`.
Result<std::vector<Mixer>> parse_mixers(const std::vector<std::string>& names,
                                        Arithmetic arithmetic, const std::string& source);

// An error names the property, its value and what was expected.
Result<void> check_config(const ModelConfig& config);
// What the cache needs beyond that: a FULL layer.
Result<void> check_cacheable(const ModelConfig& config);

// The shortest text that reads back as the same number.
std::string shortest(double value);

// Every value that changes the arithmetic, as text.
std::string describe(const ModelConfig& config);

}  // namespace lockstep::model
