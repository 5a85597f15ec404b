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

constexpr Index kMostHeads = Index{1} << (kMostTreeLevels - 1);
constexpr float kDeltaNormEps = 1e-6f;
constexpr Index kFewestTurns = 256;

bool is_state_width(Index width) {
  return width >= 8 && width <= 256 && std::has_single_bit(static_cast<std::uint64_t>(width));
}

// Calls action.template operator()<elements per lane>() for a row of `width` elements.
template <class Action>
void with_state_width(Index width, const Action& action) {
  switch (width) {
    case 8:
      return action.template operator()<2>();
    case 16:
      return action.template operator()<4>();
    case 32:
      return action.template operator()<8>();
    case 64:
      return action.template operator()<16>();
    case 128:
      return action.template operator()<32>();
    default:
      return action.template operator()<64>();
  }
}

Index floats_of(Bytes bytes) {
  return bytes.value() / static_cast<Index>(sizeof(float));
}

}  // namespace

Result<void> check_device_kernels(const ModelConfig& config) {
  const DecoderShape& shape = config.shape;
  const auto experts = [](Mlp mlp) { return mlp == Mlp::experts; };
  bool wide = false;
  bool many_heads = false;
  for (std::uint32_t i = 0; i < config.layers.size(); ++i) {
    many_heads |= config.shape_of(LayerId{i}).heads > kMostHeads;
    const std::optional<Mixer> mixer = config.recurrent(LayerId{i});
    if (!mixer || *mixer == Mixer::shortconv) continue;
    const bool ssm = *mixer == Mixer::mamba2;
    wide |= !is_state_width(ssm ? shape.mamba2.state : shape.delta.key_dim);
    many_heads |= (ssm ? shape.mamba2.heads : shape.delta.value_heads) > kMostHeads;
  }
  const struct {
    bool missing;
    const char* what;
  } parts[] = {
      {shape.scaling_strength != 0, "scores that grow with the position"},
      {shape.latent.rank > 0, "latent keys and values"},
      {std::ranges::any_of(config.mlps, experts), "mixtures of experts"},
      {many_heads, "more than 64 heads"},
      {wide, "states of this width (known: 8, 16, 32, 64, 128, 256)"},
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
  embedding_ = upload("embedding", own.embedding);
  const DecoderShape& shape = numbers()->config.shape;
  if (shape.embedding_norm) embedding_norm_ = upload("embedding norm", own.embedding_norm);
  if (shape.rotary_dim > 0) rotary_.emplace(shape.rotary_dim, shape.rope_theta);
  final_norm_ = upload("final norm", own.final_norm);
  head_ = upload("head", own.head);
  for (const LayerWeights& layer : own.layers) {
    layers_on_device_.push_back(
        {upload("input norm", layer.input_norm),
         upload("query", layer.query),
         upload("attention gate", layer.gate),
         upload("key", layer.key),
         upload("value", layer.value),
         upload("relative", layer.relative),
         upload("query norm", layer.query_norm),
         upload("key norm", layer.key_norm),
         upload("profiles", layer.profiles),
         upload("output", layer.output),
         upload("mlp norm", layer.mlp_norm),
         upload("gate", layer.mlp.gate),
         upload("up", layer.mlp.up),
         upload("down", layer.mlp.down),
         {upload("key conv", layer.key_conv), upload("value conv", layer.value_conv),
          upload("attention conv", layer.attention_conv), upload("mlp conv", layer.mlp_conv)},
         upload("recurrent in", layer.recurrent.in),
         upload("recurrent conv", layer.recurrent.conv),
         layer.recurrent.conv_bias.empty() ? nullptr
                                           : upload("conv bias", layer.recurrent.conv_bias),
         upload("a_log", layer.recurrent.a_log),
         upload("dt_bias", layer.recurrent.dt_bias),
         upload("skip", layer.recurrent.skip),
         upload("decay", layer.recurrent.decay),
         upload("delta gate", layer.recurrent.gate),
         upload("recurrent norm", layer.recurrent.norm),
         upload("recurrent out", layer.recurrent.out)});
  }
}

const float* DeviceDecoder::upload(std::string_view name, const std::vector<float>& values) const {
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

void DeviceDecoder::norm(const float* x, const float* weight, Index rows, const HeadNorm& shape,
                         const DeviceRows& target) const {
  const float eps = shape.eps != 0 ? shape.eps : numbers()->config.shape.norm_eps;
  const NormKernel kernel{x,   weight,        shape.weight_stride, shape.heads, shape.width,
                          eps, shape.divisor, shape.start,         target};
  launch(accelerator_, StreamKind::compute, kernel, rows * shape.heads);
}

void DeviceDecoder::project_strided(const float* x, Index x_stride, Index rows, Index inputs,
                                    const float* weights, Index outputs, float* y) const {
  if (rows == 1) {
    return start(ProjectKernel<1>{x, x_stride, rows, inputs, weights, outputs, y});
  }
  start(ProjectKernel<8>{x, x_stride, rows, inputs, weights, outputs, y});
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
  norm(device_floats(activations), final_norm_, tokens,
       {.width = shape.hidden, .divisor = shape.logit_divisor}, plain(normed, shape.hidden));
  project(normed, tokens, shape.hidden, head_, vocab(), device_floats(outputs));
}

void DeviceDecoder::clear_slot(std::span<std::byte> slot) const {
  accelerator_.fill(StreamKind::compute, std::array{slot}, 0);
}

DeviceDecoder::Job DeviceDecoder::job(LayerId layer, const Segment& segment,
                                      const Memory& memory) const {
  DecoderShape shape = own_shape(layer);
  // A recurrent layer has its mixer's convolution alone.
  if (numbers()->config.recurrent(layer)) shape.convolutions = false;
  return {layer,
          segment,
          memory,
          DeviceSegment(segment),
          layers_on_device_[layer.index()],
          shape,
          std::ssize(segment.tokens)};
}

void DeviceDecoder::run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                              std::span<std::byte> activations) const {
  const Job own = job(layer, segment, memory);
  const std::optional<Mixer> mixer = numbers()->config.recurrent(layer);
  float* hidden = device_floats(activations);
  norm_inputs(own, hidden);
  float* update = mixer ? work(Work::update, own.tokens * own.shape.hidden) : nullptr;
  if (mixer) recurrent(own, *mixer, update);
  float* projected = work(Work::attention, own.tokens * own.shape.hidden);
  if (layers()[layer.index()].attention != Attention::none) {
    heads(own, projected);
    add_attention(own, projected, hidden);
  }
  if (mixer) start(AddKernel{update, own.tokens * own.shape.hidden, hidden});
  mlp(own, hidden);
  if (!own.shape.convolutions) return;
  const std::array<const float*, 4> inputs{work(Work::key, 0), work(Work::value, 0), projected,
                                           work(Work::mlp, 0)};
  save_states(own, kKeyConv, inputs);
}

void DeviceDecoder::run_heads(LayerId layer, const Segment& segment, const Memory& memory,
                              std::span<const std::byte> activations,
                              std::span<std::byte> partial) const {
  const Job own = job(layer, segment, memory);
  const std::optional<Mixer> mixer = numbers()->config.recurrent(layer);
  norm_inputs(own, device_floats(activations));
  if (layers()[layer.index()].attention != Attention::none) {
    heads(own, device_floats(partial));
  } else if (shares_recurrent_of(layer)) {
    recurrent(own, *mixer, device_floats(partial));
  } else {
    accelerator_.fill(StreamKind::compute, std::array{partial}, 0);
  }
  if (!own.shape.convolutions) return;
  const std::array<const float*, 2> inputs{work(Work::key, 0), work(Work::value, 0)};
  save_states(own, kKeyConv, inputs);
}

void DeviceDecoder::combine_heads(LayerId layer, const Segment& segment, const Memory& memory,
                                  std::span<const std::span<const std::byte>> partials,
                                  std::span<std::byte> activations) const {
  const Job own = job(layer, segment, memory);
  const std::optional<Mixer> mixer = numbers()->config.recurrent(layer);
  const bool shares = shares_recurrent_of(layer);
  float* hidden = device_floats(activations);
  float* update = mixer && !shares ? work(Work::update, own.tokens * own.shape.hidden) : nullptr;
  if (update != nullptr) {
    norm_inputs(own, hidden);
    recurrent(own, *mixer, update);
  }
  CHECK("device_decoder.shards", partials.size() <= static_cast<std::size_t>(kMostShards));
  SumTreeKernel sum{};
  sum.count = static_cast<int>(partials.size());
  sum.width = own.tokens * own.shape.hidden;
  for (std::size_t i = 0; i < partials.size(); ++i) sum.parts[i] = device_floats(partials[i]);
  sum.y = work(Work::attention, sum.width);
  if (shares || layers()[layer.index()].attention != Attention::none) {
    start(sum);
    add_attention(own, sum.y, hidden);
  }
  if (update != nullptr) start(AddKernel{update, own.tokens * own.shape.hidden, hidden});
  mlp(own, hidden);
  if (!own.shape.convolutions) return;
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
    const Index channels = conv_channels(job, begin + i);
    kernel.parts[i] = {inputs[i], channels, channels, conv_offset(job, begin + i)};
  }
  save(job, kernel);
}

void DeviceDecoder::save(const Job& job, SaveStateKernel kernel) const {
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

const float* DeviceDecoder::turns(Index end) const {
  if (end <= turns_end_) return turns_;
  const Index pairs = rotary_->pairs();
  turns_end_ = std::max<Index>(kFewestTurns,
                               static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(end))));
  std::vector<float> values(static_cast<std::size_t>(turns_end_ * 2 * pairs));
  for (Index position = 0; position < turns_end_; ++position) {
    float* at = values.data() + position * 2 * pairs;
    rotary_->turns(position, at, at + pairs);
  }
  // The old table stays until the model ends: launches that use it may be under way.
  turns_ = upload("rotary positions", values);
  return turns_;
}

void DeviceDecoder::turn(const Job& job, Index heads, float* rows) const {
  if (!rotary_) return;
  const Index from = job.segment.start.value();
  const float* table = turns(from + job.tokens) + from * 2 * rotary_->pairs();
  start(RotateKernel{rows, job.tokens, heads, job.shape.head_dim, rotary_->pairs(), table});
}

void DeviceDecoder::norm_inputs(const Job& job, const float* hidden) const {
  float* normed = work(Work::normed, job.tokens * job.shape.hidden);
  norm(hidden, job.weights.input_norm, job.tokens, {.width = job.shape.hidden},
       plain(normed, job.shape.hidden));
}

void DeviceDecoder::heads(const Job& job, float* projected) const {
  const DecoderShape& shape = job.shape;
  const Index tokens = job.tokens;
  const float* normed = work(Work::normed, 0);
  float* query = work(Work::query, tokens * shape.query_width());
  float* relative = work(Work::relative, tokens * shape.relative_width());
  float* key = work(Work::key, tokens * shape.kv_width());
  float* value = work(Work::value, tokens * shape.kv_width());
  project(normed, tokens, shape.hidden, job.weights.query, shape.query_width(), query);
  project(normed, tokens, shape.hidden, job.weights.relative, shape.relative_width(), relative);
  project(normed, tokens, shape.hidden, job.weights.key, shape.kv_width(), key);
  project(normed, tokens, shape.hidden, job.weights.value, shape.kv_width(), value);
  if (shape.head_norms) {
    norm(query, job.weights.query_norm, tokens, {.heads = shape.heads, .width = shape.head_dim},
         plain(query, shape.query_width()));
  }
  turn(job, shape.heads, query);
  place_keys(job, key);
  place_values(job, value);

  attend(job);
  float* mixed = work(Work::mixed, 0);
  if (shape.output_gate) {
    float* gate = work(Work::gate, tokens * shape.query_width());
    project(normed, tokens, shape.hidden, job.weights.attention_gate, shape.query_width(), gate);
    start(MultiplyKernel{mixed, shape.query_width(), gate, shape.query_width(), tokens,
                         shape.query_width(), FactorKind::sigmoid});
  }
  start(ProjectHeadsKernel{mixed, tokens, shape.heads, shape.head_dim, job.weights.output,
                           shape.hidden, projected});
}

// Convolved, normed and turned, what of these the model has. The inputs of the convolution stay.
void DeviceDecoder::place_keys(const Job& job, float* key) const {
  const DecoderShape& shape = job.shape;
  const Index from = job.segment.start.value();
  float* rows = work(Work::mixed, job.tokens * std::max(shape.query_width(), shape.kv_width()));
  if (shape.convolutions) {
    convolve(job, kKeyConv, key, plain(rows, shape.kv_width()), 0, false);
  } else {
    rows = key;
  }
  const HeadNorm heads{.heads = shape.kv_heads, .width = shape.head_dim};
  if (shape.head_norms && !rotary_) {
    HeadNorm placed = heads;
    placed.start = from;
    return norm(rows, job.weights.key_norm, job.tokens, placed, pages(job, false));
  }
  if (shape.head_norms) {
    norm(rows, job.weights.key_norm, job.tokens, heads, plain(rows, shape.kv_width()));
  }
  turn(job, shape.kv_heads, rows);
  start(PlaceKernel{rows, job.tokens, from, pages(job, false)});
}

void DeviceDecoder::place_values(const Job& job, const float* value) const {
  const Index from = job.segment.start.value();
  if (job.shape.convolutions) {
    return convolve(job, kValueConv, value, pages(job, true), from, false);
  }
  start(PlaceKernel{value, job.tokens, from, pages(job, true)});
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

void DeviceDecoder::add_attention(const Job& job, const float* projected, float* hidden) const {
  if (job.shape.convolutions) {
    return convolve(job, kAttentionConv, projected, plain(hidden, job.shape.hidden), 0, true);
  }
  start(AddKernel{projected, job.tokens * job.shape.hidden, hidden});
}

void DeviceDecoder::mlp(const Job& job, float* hidden) const {
  if (numbers()->config.mlp(job.layer) == Mlp::none) return;
  const DecoderShape& shape = job.shape;
  const Index tokens = job.tokens;
  const Index width = shape.intermediate;
  float* normed = work(Work::normed, tokens * shape.hidden);
  float* gate = work(Work::gate, tokens * width);
  float* up = work(Work::up, tokens * width);
  float* output = work(Work::mlp, tokens * shape.hidden);
  norm(hidden, job.weights.mlp_norm, tokens, {.width = shape.hidden}, plain(normed, shape.hidden));
  project(normed, tokens, shape.hidden, job.weights.up, width, up);
  if (shape.activation == Activation::gated_silu) {
    project(normed, tokens, shape.hidden, job.weights.gate, width, gate);
    start(GateKernel{gate, up, tokens * width, up});
  } else {
    start(SquaredReluKernel{up, tokens * width, up});
  }
  project(up, tokens, width, job.weights.down, shape.hidden, output);
  if (shape.convolutions)
    return convolve(job, kMlpConv, output, plain(hidden, shape.hidden), 0, true);
  start(AddKernel{output, tokens * shape.hidden, hidden});
}

DeviceStates DeviceDecoder::states(const Job& job) const {
  const RowMemory& slots = job.memory.of(Component::mamba);
  return {state(job, kTrapRow), floats_of(slots.layout->row_bytes), job.segment.q.value(),
          job.device.snapshots(), std::ssize(job.segment.snapshots)};
}

void DeviceDecoder::recurrent(const Job& job, Mixer mixer, float* update) const {
  const DecoderShape& shape = job.shape;
  const RecurrentSizes sizes = recurrent_sizes(shape, mixer);
  const Index tokens = job.tokens;
  float* projected = work(Work::projected, tokens * sizes.projected);
  float* convolved = work(Work::convolved, tokens * sizes.conv_channels);
  project(work(Work::normed, 0), tokens, shape.hidden, job.weights.in, sizes.projected, projected);
  float* inputs = projected + sizes.conv_begin;
  const bool plain_conv = mixer == Mixer::shortconv;
  if (plain_conv) {  // B
    start(MultiplyKernel{inputs, sizes.projected, projected, sizes.projected, tokens, shape.hidden,
                         FactorKind::plain});
  }
  start(ConvolvePlainKernel{state(job, job.segment.q) + sizes.temporal, inputs, sizes.projected,
                            job.weights.conv, job.weights.conv_bias, tokens,
                            numbers()->config.conv_width, sizes.conv_channels, !plain_conv,
                            convolved});
  SaveStateKernel kernel{};
  kernel.count = 1;
  kernel.parts[0] = {inputs, sizes.projected, sizes.conv_channels, sizes.temporal};
  save(job, kernel);
  if (plain_conv) {  // C
    start(MultiplyKernel{convolved, sizes.conv_channels, projected + shape.hidden, sizes.projected,
                         tokens, shape.hidden, FactorKind::plain});
    return project(convolved, tokens, sizes.output, job.weights.out, shape.hidden, update);
  }
  if (mixer == Mixer::mamba2) {
    mamba2(job, sizes);
  } else {
    delta_rule(job, mixer, sizes);
  }
  const bool ssm = mixer == Mixer::mamba2;
  start(ProjectHeadsKernel{
      work(Work::recurrent, 0), tokens, ssm ? shape.mamba2.heads : shape.delta.value_heads,
      ssm ? shape.mamba2.head_dim : shape.delta.value_dim, job.weights.out, shape.hidden, update});
}

void DeviceDecoder::mamba2(const Job& job, const RecurrentSizes& sizes) const {
  const Mamba2Shape& shape = job.shape.mamba2;
  const Index tokens = job.tokens;
  const float* projected = work(Work::projected, 0);
  float* dt = work(Work::beta, tokens * shape.heads);
  float* decay = work(Work::decay, tokens * shape.heads);
  float* y = work(Work::recurrent, tokens * shape.channels());
  start(Mamba2PrepareKernel{projected + sizes.conv_begin + sizes.conv_channels, sizes.projected,
                            tokens, shape.heads, job.weights.a_log, job.weights.dt_bias, dt,
                            decay});
  with_state_width(shape.state, [&]<Index kPerLane>() {
    start(Mamba2Kernel<kPerLane>{states(job), tokens, shape.heads, shape.head_dim, shape.groups,
                                 work(Work::convolved, 0), sizes.conv_channels, dt, decay,
                                 job.weights.skip, y});
  });
  start(MultiplyKernel{y, shape.channels(), projected, sizes.projected, tokens, shape.channels(),
                       FactorKind::silu});  // z
  if (!shape.norm) return;
  const Index width = shape.channels() / shape.groups;
  norm(y, job.weights.norm, tokens, {.heads = shape.groups, .width = width, .weight_stride = width},
       plain(y, shape.channels()));
}

void DeviceDecoder::delta_rule(const Job& job, Mixer mixer, const RecurrentSizes& sizes) const {
  const DeltaShape& shape = job.shape.delta;
  const bool gdn = mixer == Mixer::gdn;
  const Index tokens = job.tokens;
  const Index width = shape.value_width();
  const Index rows = tokens * shape.value_heads;
  const Index mixed = 2 * shape.key_width() + width;  // columns of q, k, v
  const float* projected = work(Work::projected, 0);
  const float* convolved = work(Work::convolved, 0);
  float* y = work(Work::recurrent, tokens * width);
  DeltaPrepareKernel prepare{};
  prepare.convolved = convolved;
  prepare.conv_channels = sizes.conv_channels;
  prepare.projected = projected;
  prepare.stride = sizes.projected;
  prepare.beta_column = gdn ? mixed + width : mixed;  // behind z
  prepare.decay_column = sizes.projected - (gdn ? shape.value_heads : 2 * shape.rank);
  prepare.key_heads = shape.key_heads;
  prepare.heads = shape.value_heads;
  prepare.key_dim = shape.key_dim;
  prepare.rank = gdn ? 0 : shape.rank;
  prepare.a_log = job.weights.a_log;
  prepare.dt_bias = job.weights.dt_bias;
  prepare.decay_matrix = job.weights.decay;
  prepare.query_scale = detmath::rsqrt(static_cast<float>(shape.key_dim));
  prepare.eps = kDeltaNormEps;
  prepare.query = work(Work::delta_query, rows * shape.key_dim);
  prepare.key = work(Work::delta_key, rows * shape.key_dim);
  prepare.decay = work(Work::decay, rows * (gdn ? 1 : shape.key_dim));
  prepare.beta = work(Work::beta, rows);
  launch(accelerator_, StreamKind::compute, prepare, rows);
  with_state_width(shape.key_dim, [&]<Index kPerLane>() {
    start(DeltaKernel<kPerLane>{states(job), tokens, shape.value_heads, shape.value_dim,
                                prepare.query, prepare.key, prepare.decay, gdn ? 1 : shape.key_dim,
                                prepare.beta, convolved + 2 * shape.key_width(),
                                sizes.conv_channels, y});
  });
  norm(y, job.weights.norm, tokens, {.heads = shape.value_heads, .width = shape.value_dim},
       plain(y, width));
  if (gdn) {  // z
    return start(MultiplyKernel{y, width, projected + mixed, sizes.projected, tokens, width,
                                FactorKind::silu});
  }
  float* gate = work(Work::gate, tokens * width);
  project_strided(projected + sizes.projected - shape.rank, sizes.projected, tokens, shape.rank,
                  job.weights.delta_gate, width, gate);
  start(MultiplyKernel{y, width, gate, width, tokens, width, FactorKind::sigmoid});
}

}  // namespace lockstep::model
