// Models whose forwards are kernels against their host versions, bit for bit, with the kernels run
// on the host. The kernels' units run from the last to the first.
#include <array>
#include <cstring>
#include <deque>

#include "catch.h"
#include "device/host_accelerator.h"
#include "model/device_decoder.h"
#include "model_families.h"
#include "model_sandbox.h"

namespace lockstep::model {
namespace {

class Backwards final : public HostAccelerator {
 public:
  void launch(StreamKind, const KernelCall& call) override {
    ++launches;
    for (std::int64_t unit = call.units; unit-- > 0;) call.emulate(call.kernel, unit);
  }
  std::int64_t launches = 0;
};

ModelSpec preset(const char* name) {
  ModelSpec spec;
  spec.preset = name;
  return spec;
}

std::unique_ptr<Model> on_device(const ModelSpec& spec, Tokens page, Shard shard,
                                 Accelerator& accelerator) {
  auto model = make_model(spec, 7, page, shard, &accelerator);
  if (!model) throw std::runtime_error(model.error().message);
  return std::move(*model);
}

void require_equal_rows(Sandbox& host, Sandbox& device) {
  REQUIRE(device.pages(Component::full) == host.pages(Component::full));
  REQUIRE(device.pages(Component::swa) == host.pages(Component::swa));
  REQUIRE(std::ranges::equal(device.slot(Sandbox::kQ), host.slot(Sandbox::kQ)));
  REQUIRE(std::ranges::equal(device.slot(Sandbox::kSnapshot), host.slot(Sandbox::kSnapshot)));
}

// Logits that are numbers and not all the same, or equal bits would say little.
void require_sound(const std::vector<std::byte>& outputs) {
  std::vector<float> logits(outputs.size() / sizeof(float));
  std::memcpy(logits.data(), outputs.data(), outputs.size());
  const auto finite = [](float logit) { return logit - logit == 0.0f; };
  REQUIRE(std::ranges::all_of(logits, finite));
  REQUIRE(*std::ranges::max_element(logits) > *std::ranges::min_element(logits) + 0.01f);
}

// Forwards of these sizes with a snapshot in each that is long enough, window pages released on the
// way.
void compare(const Model* host, const Model* device, Tokens page, std::size_t stride,
             bool descending, const std::vector<std::size_t>& sizes) {
  REQUIRE(device->fingerprint() == host->fingerprint());
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += size;
  const Tokens capacity{static_cast<std::int64_t>(total)};
  Sandbox expected(*host, page, capacity, stride, descending);
  Sandbox found(*device, page, capacity, stride, descending);
  expected.extra_key = found.extra_key = "adapter";
  const std::vector<TokenId> tokens = random_tokens(*host, total, 5);
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    const std::span<const TokenId> some = std::span(tokens).subspan(at, size);
    const std::array<SnapshotView, 1> snapshot{
        {{expected.length() + Tokens{static_cast<std::int64_t>(size) / 2}, Sandbox::kSnapshot}}};
    const bool takes = size > 1 && host->geometry().has_mamba;
    const std::span<const SnapshotView> snapshots(snapshot.data(), takes ? 1 : 0);
    const std::vector<std::byte> outputs = expected.feed(some, snapshots);
    REQUIRE(found.feed(some, snapshots) == outputs);
    if (host->has_logits()) require_sound(outputs);
    at += size;
    if (host->geometry().has_swa) {
      expected.release_window(expected.length());
      found.release_window(found.length());
    }
  }
  require_equal_rows(expected, found);
}

void compare(const ModelSpec& spec, Tokens page, std::size_t stride, bool descending,
             const std::vector<std::size_t>& sizes) {
  Backwards accelerator;
  const std::unique_ptr<Model> host = must_make(spec, 7, page);
  const std::unique_ptr<Model> device = on_device(spec, page, {}, accelerator);
  compare(host.get(), device.get(), page, stride, descending, sizes);
  REQUIRE(accelerator.launches > 0);
}

std::vector<float> draw(std::int64_t count, std::int64_t inputs, SplitMix64& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const float range = detmath::rsqrt(static_cast<float>(inputs));
  for (float& value : values) {
    const auto centered = static_cast<std::int64_t>(random.below(1u << 24)) - (1 << 23);
    value = static_cast<float>(centered) * 0x1p-23f * range;
  }
  return values;
}

// Weights of every part that the shape has.
Weights weights_of(const ModelConfig& config) {
  Weights weights = draw_weights(config, 7);
  const DecoderShape& shape = config.shape;
  SplitMix64 random(9);
  for (std::uint32_t i = 0; i < config.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    if (!shape.convolutions) {
      for (auto* conv :
           {&layer.key_conv, &layer.value_conv, &layer.attention_conv, &layer.mlp_conv}) {
        conv->clear();
      }
    }
    if (shape.output_gate) {
      layer.gate = draw(shape.hidden * shape.query_width(), shape.hidden, random);
    }
    const std::optional<Mixer> mixer = config.recurrent(LayerId{i});
    if (!mixer) continue;
    const RecurrentSizes sizes = recurrent_sizes(shape, *mixer);
    const bool ssm = *mixer == Mixer::mamba2;
    const std::int64_t heads = ssm ? shape.mamba2.heads : shape.delta.value_heads;
    const bool kda = *mixer == Mixer::kda;
    RecurrentWeights& own = layer.recurrent;
    own.in = draw(shape.hidden * sizes.projected, shape.hidden, random);
    own.conv = draw(config.conv_width * sizes.conv_channels, config.conv_width, random);
    if (ssm && shape.mamba2.conv_bias) own.conv_bias = draw(sizes.conv_channels, 4, random);
    own.a_log = draw(heads, 1, random);
    own.dt_bias = draw(kda ? heads * shape.delta.key_dim : heads, 1, random);
    own.skip = draw(heads, 1, random);
    own.decay = draw(shape.delta.rank * heads * shape.delta.key_dim, 4, random);
    own.gate = draw(shape.delta.rank * sizes.output, 4, random);
    own.norm = draw(ssm ? sizes.output : shape.delta.value_dim, 1, random);
    own.out = draw(sizes.output * shape.hidden, sizes.output, random);
  }
  return weights;
}

void compare(const ModelConfig& config) {
  Backwards accelerator;
  REQUIRE(check_config(config).ok());
  REQUIRE(check_device_kernels(config).ok());
  const Decoder host(config, weights_of(config), "7");
  const DeviceDecoder device(config, weights_of(config), "7", {}, accelerator);
  compare(&host, &device, Tokens{4}, 1, false, {21, 1, 1, 18, 2});
}

// Inkling's sizes without what only Inkling has.
ModelConfig plain_decoder(std::vector<Mixer> layers) {
  ModelConfig config = resolve_model_config(preset("inkling-pico")).value();
  config.layers = std::move(layers);
  config.shape.convolutions = false;
  config.shape.relative_dim = 0;
  config.shape.mamba2 = {.heads = 4, .head_dim = 6, .state = 8, .groups = 2};
  config.shape.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 11};
  return config;
}

TEST_CASE("device model: inkling-pico has the host's bits, whatever the forwards and pages") {
  compare(preset("inkling-pico"), Tokens{4}, 1, false, {45, 1, 1, 1, 17});
  compare(preset("inkling-pico"), Tokens{1}, 7, false, {3, 40, 1, 2, 9});
  compare(preset("inkling-pico"), Tokens{32}, 1, true, {1, 1, 16, 16, 31, 1});
}

TEST_CASE("device model: inkling-nano has the host's bits") {
  compare(preset("inkling-nano"), Tokens{16}, 3, false, {600, 1, 1, 33});
}

TEST_CASE("device model: other windows, heads and widths have the host's bits") {
  ModelSpec spec = preset("inkling-pico");
  spec.window = Tokens{1};
  compare(spec, Tokens{4}, 1, false, {20, 1, 3});
  spec.window = Tokens{50};
  compare(spec, Tokens{8}, 1, false, {30, 30, 1, 30});
}

TEST_CASE("device model: the fingerprint model has the host's words") {
  compare(preset("fingerprint"), Tokens{4}, 1, false, {45, 1, 1, 1, 17});
  ModelSpec spec = preset("fingerprint");
  spec.window = Tokens{5};
  compare(spec, Tokens{3}, 5, true, {2, 17, 1, 1, 30});
  spec.window = Tokens{1};
  compare(spec, Tokens{1}, 1, false, {9, 1, 4});
}

TEST_CASE("device model: a token that the host does not know is taken from the output in front") {
  for (const char* name : {"inkling-pico", "fingerprint"}) {
    Backwards accelerator;
    const std::unique_ptr<Model> device = on_device(preset(name), Tokens{4}, {}, accelerator);
    Sandbox told(*device, Tokens{4}, Tokens{16});
    const std::vector<TokenId> prompt = random_tokens(*device, 6, 11);
    const std::vector<std::byte> outputs = told.feed(prompt);
    const auto last = std::span(outputs).last(device->output_bytes().index());
    const std::vector<TokenId> next{device->next_token(last)};

    std::array<std::vector<std::byte>, 2> hidden;
    const std::array<std::vector<TokenId>, 2> tokens{next, {kTokenOnDevice}};
    for (std::size_t i = 0; i < 2; ++i) {
      Segment segment = told.next(tokens[i]);
      std::vector<std::byte> uploaded(device_segment_bytes(segment).index());
      segment.uploaded = uploaded;
      if (i == 1) segment.input = last;
      hidden[i].resize(device->activation_bytes().index());
      device->embed(segment, hidden[i]);
    }
    REQUIRE(hidden[0] == hidden[1]);
  }
}

void check_shards(const ModelSpec& spec) {
  for (const std::uint32_t ranks : {2u, 4u}) {
    Backwards accelerator;
    std::vector<std::unique_ptr<Model>> models;
    std::deque<Sandbox> memory;
    const std::unique_ptr<Model> whole = must_make(spec, 7, Tokens{4});
    Sandbox alone(*whole, Tokens{4}, Tokens{40});
    const std::vector<TokenId> tokens = random_tokens(*whole, 40, 3);
    const std::vector<std::byte> expected = alone.feed(tokens);

    std::deque<Segment> segments;
    std::deque<std::vector<std::byte>> uploaded;
    std::vector<std::vector<std::byte>> hidden(ranks);
    std::vector<std::vector<std::byte>> partial(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      models.push_back(on_device(spec, Tokens{4}, {r, ranks}, accelerator));
      memory.emplace_back(*models[r], Tokens{4}, Tokens{40});
      segments.push_back(memory[r].next(tokens));
      uploaded.emplace_back(device_segment_bytes(segments[r]).index());
      segments[r].uploaded = uploaded[r];
      hidden[r].resize(tokens.size() * models[r]->activation_bytes().index());
      partial[r].resize(tokens.size() * models[r]->partial_bytes().index());
      models[r]->embed(segments[r], hidden[r]);
    }
    const std::vector<std::span<const std::byte>> partials(partial.begin(), partial.end());
    for (std::uint32_t layer = 0; layer < whole->layers().size(); ++layer) {
      for (std::uint32_t r = 0; r < ranks; ++r) {
        models[r]->run_heads(LayerId{layer}, segments[r], memory[r].memory(), hidden[r],
                             partial[r]);
      }
      for (std::uint32_t r = 0; r < ranks; ++r) {
        models[r]->combine_heads(LayerId{layer}, segments[r], memory[r].memory(), partials,
                                 hidden[r]);
      }
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      std::vector<std::byte> outputs(expected.size());
      models[r]->head(segments[r], hidden[r], outputs);
      REQUIRE(outputs == expected);
    }
  }
}

TEST_CASE("device model: shards have the bits of shards on the host") {
  for (const char* name :
       {"inkling-pico", "mamba2-nano", "gdn-nano", "kda-nano", "lfm2-nano", "hybrid-nano"}) {
    INFO(name);
    check_shards(preset(name));
  }
}

TEST_CASE("device model: every family has the host's bits") {
  for (const ModelSpec& family : family_presets()) {
    compare(family, Tokens{4}, 3, true, {45, 1, 1, 17});
  }
}

TEST_CASE("device model: attention of other families has the host's bits") {
  ModelConfig config = plain_decoder({Mixer::full, Mixer::swa});
  compare(config);
  config.shape.rotary_dim = 4;
  config.shape.rope_theta = 1e4f;
  config.shape.root_scale = true;
  compare(config);
  config.shape.output_gate = true;
  config.shape.head_norms = false;
  config.shape.embedding_norm = false;
  config.shape.activation = Activation::squared_relu;
  compare(config);
}

TEST_CASE("device model: recurrent mixers have the host's bits") {
  ModelConfig config = plain_decoder({Mixer::shortconv, Mixer::full});
  compare(config);
  config = plain_decoder({Mixer::mamba2, Mixer::full, Mixer::full_mamba2});
  compare(config);
  config.shape.mamba2.norm = true;
  config.shape.mamba2.conv_bias = true;
  config.shape.mamba2.state = 32;
  compare(config);
  config = plain_decoder({Mixer::gdn, Mixer::full});
  compare(config);
  config.shape.delta.key_dim = 64;
  compare(config);
  config = plain_decoder({Mixer::kda, Mixer::full});
  config.shape.delta.key_heads = 4;
  config.shape.delta.rank = 5;
  compare(config);
  config.mlps = {Mlp::none, Mlp::dense};
  compare(config);
}

TEST_CASE("device model: what has no kernels is refused by name") {
  ModelConfig config = resolve_model_config(preset("inkling-pico")).value();
  REQUIRE(check_device_kernels(config).ok());
  config.shape.latent.rank = 8;
  REQUIRE(check_device_kernels(config).error().message ==
          "model inkling-pico: no device kernels for latent keys and values; it runs with "
          "--backend host");
}

}  // namespace
}  // namespace lockstep::model
