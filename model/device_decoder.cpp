#include "model/device_decoder.h"

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace lockstep::model {

namespace {

constexpr std::size_t kKeyConv = 0;
constexpr std::size_t kValueConv = 1;
constexpr std::size_t kAttentionConv = 2;
constexpr std::size_t kMlpConv = 3;

// Queries are tiled so that their scores stay below this.
constexpr Index kMostScoreFloats = Index{1} << 26;

const float* device_floats(std::span<const std::byte> bytes) {
  return reinterpret_cast<const float*>(bytes.data());
}

float* device_floats(std::span<std::byte> bytes) {
  return reinterpret_cast<float*>(bytes.data());
}

DeviceRows plain(float* base, Index width) {
  DeviceRows rows;
  rows.base = base;
  rows.width = width;
  return rows;
}

Index floats_of(Bytes bytes) {
  return bytes.value() / static_cast<Index>(sizeof(float));
}

}  // namespace

Result<void> check_device_kernels(const ModelConfig& config) {
  const DecoderShape& shape = config.shape;
  const bool dense = std::ranges::all_of(config.mlps, [](Mlp mlp) { return mlp == Mlp::dense; });
  const auto known_mixer = [](Mixer mixer) { return mixer == Mixer::full || mixer == Mixer::swa; };
  const struct {
    bool missing;
    const char* what;
  } parts[] = {
      {!std::ranges::all_of(config.layers, known_mixer), "recurrent mixers"},
      {!shape.embedding_norm || !shape.head_norms, "layers without norms"},
      {!shape.convolutions, "layers without convolutions"},
      {shape.rotary_dim > 0, "rotary positions"},
      {shape.output_gate, "the output gate of attention"},
      {shape.scaling_strength != 0, "scores that grow with the position"},
      {shape.latent.rank > 0, "latent keys and values"},
      {!dense || shape.activation != Activation::gated_silu, "MLPs other than the gated one"},
      {shape.heads > Index{1} << (kMostTreeLevels - 1), "more than 64 heads"},
  };
  for (const auto& part : parts) {
    if (part.missing) {
      return Error{"model " + config.name + ": no device kernels for " + part.what +
                   "; it runs with --backend host"};
    }
  }
  return {};
}

DeviceDecoder::DeviceDecoder(const ModelConfig& config, Weights weights,
                             const std::string& weights_name, Shard shard, Accelerator& accelerator)
    : Decoder(config, std::move(weights), weights_name, shard), accelerator_(accelerator) {
  const Weights& own = numbers()->weights;
  embedding_ = keep("embedding", own.embedding);
  embedding_norm_ = keep("embedding norm", own.embedding_norm);
  final_norm_ = keep("final norm", own.final_norm);
  head_ = keep("head", own.head);
  for (const LayerWeights& layer : own.layers) {
    layers_on_device_.push_back(
        {keep("input norm", layer.input_norm),
         keep("query", layer.query),
         keep("key", layer.key),
         keep("value", layer.value),
         keep("relative", layer.relative),
         keep("query norm", layer.query_norm),
         keep("key norm", layer.key_norm),
         keep("profiles", layer.profiles),
         keep("output", layer.output),
         keep("mlp norm", layer.mlp_norm),
         keep("gate", layer.mlp.gate),
         keep("up", layer.mlp.up),
         keep("down", layer.mlp.down),
         {keep("key conv", layer.key_conv), keep("value conv", layer.value_conv),
          keep("attention conv", layer.attention_conv), keep("mlp conv", layer.mlp_conv)}});
  }
}

const float* DeviceDecoder::keep(std::string_view name, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const std::span<std::byte> device = accelerator_.allocate(name, Bytes{std::ssize(bytes)});
  accelerator_.upload(StreamKind::compute, device, bytes);
  return device_floats(device);
}

float* DeviceDecoder::work(Work name, Index floats) const {
  std::span<std::byte>& buffer = work_[static_cast<std::size_t>(name)];
  const auto size = static_cast<std::size_t>(floats) * sizeof(float);
  if (buffer.size() < size) {
    // The old one stays until the model ends: launches that use it may be under way.
    buffer =
        accelerator_.allocate("workspace", Bytes{static_cast<std::int64_t>(std::bit_ceil(size))});
  }
  return device_floats(buffer);
}

void DeviceDecoder::norm(const float* x, const float* weight, Index rows, Index heads, Index width,
                         Index start_at, const DeviceRows& target, float divisor) const {
  const NormKernel kernel{x,       weight,   heads, width, numbers()->config.shape.norm_eps,
                          divisor, start_at, target};
  launch(accelerator_, StreamKind::compute, kernel, rows * heads);
}

void DeviceDecoder::project(const float* x, Index rows, Index inputs, const float* weights,
                            Index outputs, float* y) const {
  if (rows == 1) return start(ProjectKernel<1>{x, rows, inputs, weights, outputs, y});
  start(ProjectKernel<8>{x, rows, inputs, weights, outputs, y});
}

void DeviceDecoder::embed(const Segment& segment, std::span<std::byte> activations) const {
  const DeviceSegment device(segment);
  device.upload(accelerator_);
  const Index width = numbers()->config.shape.hidden;
  if (!segment.input.empty()) {
    launch(accelerator_, StreamKind::compute,
           NextTokenKernel{device_floats(segment.input), vocab(),
                           device.tokens() + device.token_count() - 1},
           1);
  }
  const float* adapter = nullptr;
  if (segment.extra_key) {
    const std::vector<float> values = numbers()->weights.adapter(*segment.extra_key);
    float* target = work(Work::adapter, width);
    accelerator_.upload(StreamKind::compute,
                        {reinterpret_cast<std::byte*>(target), values.size() * sizeof(float)},
                        std::as_bytes(std::span(values)));
    adapter = target;
  }
  launch(accelerator_, StreamKind::compute,
         EmbedKernel{embedding_, embedding_norm_, adapter, device.tokens(), width,
                     numbers()->config.shape.norm_eps, device_floats(activations)},
         device.token_count());
}

void DeviceDecoder::head(const Segment& segment, std::span<const std::byte> activations,
                         std::span<std::byte> outputs) const {
  const DecoderShape& shape = numbers()->config.shape;
  const Index tokens = std::ssize(segment.tokens);
  float* normed = work(Work::normed, tokens * shape.hidden);
  norm(device_floats(activations), final_norm_, tokens, 1, shape.hidden, 0,
       plain(normed, shape.hidden), shape.logit_divisor);
  project(normed, tokens, shape.hidden, head_, vocab(), device_floats(outputs));
}

void DeviceDecoder::clear_slot(std::span<std::byte> slot) const {
  accelerator_.fill(StreamKind::compute, std::array{slot}, 0);
}

DeviceDecoder::Job DeviceDecoder::job(LayerId layer, const Segment& segment,
                                      const Memory& memory) const {
  return {layer,
          segment,
          memory,
          DeviceSegment(segment),
          layers_on_device_[layer.index()],
          numbers()->config.shape_of(layer),
          std::ssize(segment.tokens)};
}

void DeviceDecoder::run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                              std::span<std::byte> activations) const {
  const Job own = job(layer, segment, memory);
  float* hidden = device_floats(activations);
  float* projected = work(Work::attention, own.tokens * own.shape.hidden);
  heads(own, hidden, projected);
  rest(own, projected, hidden);
  const std::array<const float*, 4> inputs{work(Work::key, 0), work(Work::value, 0), projected,
                                           work(Work::mlp, 0)};
  save_states(own, kKeyConv, inputs);
}

void DeviceDecoder::run_heads(LayerId layer, const Segment& segment, const Memory& memory,
                              std::span<const std::byte> activations,
                              std::span<std::byte> partial) const {
  const Job own = job(layer, segment, memory);
  heads(own, device_floats(activations), device_floats(partial));
  const std::array<const float*, 2> inputs{work(Work::key, 0), work(Work::value, 0)};
  save_states(own, kKeyConv, inputs);
}

void DeviceDecoder::combine_heads(LayerId layer, const Segment& segment, const Memory& memory,
                                  std::span<const std::span<const std::byte>> partials,
                                  std::span<std::byte> activations) const {
  const Job own = job(layer, segment, memory);
  CHECK("device_decoder.shards", partials.size() <= static_cast<std::size_t>(kMostShards));
  SumTreeKernel sum{};
  sum.count = static_cast<int>(partials.size());
  sum.width = own.tokens * own.shape.hidden;
  for (std::size_t i = 0; i < partials.size(); ++i) sum.parts[i] = device_floats(partials[i]);
  sum.y = work(Work::attention, sum.width);
  start(sum);
  rest(own, sum.y, device_floats(activations));
  const std::array<const float*, 2> inputs{sum.y, work(Work::mlp, 0)};
  save_states(own, kAttentionConv, inputs);
}

float* DeviceDecoder::state(const Job& job, Row slot) const {
  const RowMemory& slots = job.memory.of(Component::mamba);
  const std::size_t offset = slots.layout->range_of(job.layer).offset.index();
  return reinterpret_cast<float*>(slots.base + slot.index() * slots.layout->row_bytes.index() +
                                  offset);
}

DeviceRows DeviceDecoder::pages(const Job& job, bool values) const {
  const bool full = layers()[job.layer.index()].attention == Attention::full;
  const RowMemory& memory = job.memory.of(full ? Component::full : Component::swa);
  DeviceRows rows;
  rows.base =
      reinterpret_cast<float*>(memory.base + memory.layout->range_of(job.layer).offset.index());
  rows.table = full ? job.device.full() : job.device.swa();
  rows.page = job.memory.page.value();
  rows.row_floats = floats_of(memory.layout->row_bytes);
  rows.width = job.shape.kv_width();
  rows.skip = values ? rows.page * rows.width : 0;
  return rows;
}

Index DeviceDecoder::conv_channels(const Job& job, std::size_t convolution) const {
  return convolution < kAttentionConv ? job.shape.kv_width() : job.shape.hidden;
}

Index DeviceDecoder::conv_offset(const Job& job, std::size_t convolution) const {
  Index channels = 0;
  for (std::size_t i = 0; i < convolution; ++i) channels += conv_channels(job, i);
  return channels * (numbers()->config.conv_width - 1);
}

void DeviceDecoder::convolve(const Job& job, std::size_t convolution, const float* inputs,
                             const DeviceRows& target, Index start_at, bool adds) const {
  start(ConvolveKernel{state(job, job.segment.q) + conv_offset(job, convolution), inputs,
                       job.weights.convolutions[convolution], job.tokens,
                       numbers()->config.conv_width, conv_channels(job, convolution), start_at,
                       target, adds});
}

void DeviceDecoder::save_states(const Job& job, std::size_t begin,
                                std::span<const float* const> inputs) const {
  SaveStateKernel kernel{};
  kernel.count = static_cast<int>(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    kernel.parts[i] = {inputs[i], conv_channels(job, begin + i), conv_offset(job, begin + i)};
  }
  kernel.source = state(job, job.segment.q);
  kernel.history = numbers()->config.conv_width - 1;
  for (const SnapshotView& snapshot : job.segment.snapshots) {
    kernel.target = state(job, snapshot.slot);
    kernel.tokens = (snapshot.depth - job.segment.start).value();
    start(kernel);
  }
  // Last: the snapshots read what this overwrites.
  kernel.target = state(job, job.segment.q);
  kernel.tokens = job.tokens;
  start(kernel);
}

void DeviceDecoder::heads(const Job& job, const float* hidden, float* projected) const {
  const DecoderShape& shape = job.shape;
  const Index tokens = job.tokens;
  const Index from = job.segment.start.value();
  float* normed = work(Work::normed, tokens * shape.hidden);
  norm(hidden, job.weights.input_norm, tokens, 1, shape.hidden, 0, plain(normed, shape.hidden));

  float* query = work(Work::query, tokens * shape.query_width());
  float* relative = work(Work::relative, tokens * shape.relative_width());
  float* key = work(Work::key, tokens * shape.kv_width());
  float* value = work(Work::value, tokens * shape.kv_width());
  project(normed, tokens, shape.hidden, job.weights.query, shape.query_width(), query);
  project(normed, tokens, shape.hidden, job.weights.relative, shape.relative_width(), relative);
  project(normed, tokens, shape.hidden, job.weights.key, shape.kv_width(), key);
  project(normed, tokens, shape.hidden, job.weights.value, shape.kv_width(), value);
  norm(query, job.weights.query_norm, tokens, shape.heads, shape.head_dim, 0,
       plain(query, shape.query_width()));

  float* convolved = work(Work::mixed, tokens * std::max(shape.query_width(), shape.kv_width()));
  convolve(job, kKeyConv, key, plain(convolved, shape.kv_width()), 0, false);
  norm(convolved, job.weights.key_norm, tokens, shape.kv_heads, shape.head_dim, from,
       pages(job, false));
  convolve(job, kValueConv, value, pages(job, true), from, false);

  attend(job);
  start(ProjectHeadsKernel{work(Work::mixed, 0), tokens, shape.heads, shape.head_dim,
                           job.weights.output, shape.hidden, projected});
}

void DeviceDecoder::attend(const Job& job) const {
  const DecoderShape& shape = job.shape;
  const bool full = layers()[job.layer.index()].attention == Attention::full;
  AttentionShape tile{};
  tile.heads = shape.heads;
  tile.group = shape.heads / shape.kv_heads;
  tile.dim = shape.head_dim;
  tile.window = full ? 0 : geometry().window.value();
  const auto dim = static_cast<float>(shape.head_dim);
  const float scale = shape.root_scale ? detmath::rsqrt(dim) : 1.0f / dim;
  for (Index first = 0; first < job.tokens; first += tile.count) {
    tile.start = job.segment.start.value() + first;
    tile.first_block = tile.first_visible(tile.start) / kernels::kBlock;
    const auto blocks = [&](Index count) {
      return (tile.start + count - 1) / kernels::kBlock + 1 - tile.first_block;
    };
    const Index most = kMostScoreFloats / (shape.heads * kernels::kBlock * blocks(job.tokens));
    tile.count = std::clamp<Index>(most, 1, job.tokens - first);
    tile.blocks = blocks(tile.count);

    const Index rows = tile.count * shape.heads;
    float* scores = work(Work::scores, rows * tile.blocks * kernels::kBlock);
    float* sums = work(Work::sums, rows);
    const float* query = work(Work::query, 0) + first * shape.query_width();
    const float* relative = work(Work::relative, 0) + first * shape.relative_width();
    float* output = work(Work::mixed, 0) + first * shape.query_width();
    start(ScoreKernel{tile, query, relative, job.weights.profiles, shape.relative_dim,
                      numbers()->config.bias_extent(job.layer), scale, pages(job, false), scores});
    start(WeighKernel{tile, scores, sums});
    start(AccumulateKernel{tile, scores, sums, pages(job, true), output});
  }
}

void DeviceDecoder::rest(const Job& job, const float* projected, float* hidden) const {
  const DecoderShape& shape = job.shape;
  const Index tokens = job.tokens;
  const DeviceRows rows = plain(hidden, shape.hidden);
  convolve(job, kAttentionConv, projected, rows, 0, true);

  float* normed = work(Work::normed, tokens * shape.hidden);
  float* gate = work(Work::gate, tokens * shape.intermediate);
  float* up = work(Work::up, tokens * shape.intermediate);
  float* output = work(Work::mlp, tokens * shape.hidden);
  norm(hidden, job.weights.mlp_norm, tokens, 1, shape.hidden, 0, plain(normed, shape.hidden));
  project(normed, tokens, shape.hidden, job.weights.gate, shape.intermediate, gate);
  project(normed, tokens, shape.hidden, job.weights.up, shape.intermediate, up);
  start(GateKernel{gate, up, tokens * shape.intermediate, gate});
  project(gate, tokens, shape.intermediate, job.weights.down, shape.hidden, output);
  convolve(job, kMlpConv, output, rows, 0, true);
}

}  // namespace lockstep::model
