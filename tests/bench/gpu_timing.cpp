// Times on the wall clock: how fast rows are restored, and what the forward waits for.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/check.h"
#include "device/free_running.h"
#include "gpu_checks.h"
#include "model/config.h"
#include "model/device_decoder.h"
#include "model/model.h"

namespace lockstep::bench {
namespace {

using WallClock = std::chrono::steady_clock;

constexpr int kRepeats = 7;

double seconds(const std::function<void()>& action) {
  const WallClock::time_point start = WallClock::now();
  action();
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Gigabytes per second of a list of copies, the median of some repeats behind one to warm up.
double rate(Accelerator& accelerator, const CopyList& copies) {
  std::vector<double> rates;
  for (int i = 0; i <= kRepeats; ++i) {
    const double time = seconds([&] {
      accelerator.copy(StreamKind::load, copies, 0, 1);
      accelerator.synchronize();
    });
    if (i > 0) rates.push_back(static_cast<double>(copies.size().value()) / time * 1e-9);
  }
  return median(rates);
}

// `count` rows in `layers` pieces each: as a load copies them, piece by piece of rows that do not
// follow each other.
CopyList scattered(std::span<std::byte> target, std::span<const std::byte> source,
                   std::size_t count, std::size_t layers) {
  CopyList list;
  const std::size_t row = source.size() / count;
  const std::size_t piece = row / layers;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t from = i * row + layer * piece;
      const std::size_t to = i * 7 % count * row + layer * piece;
      list.add(target.subspan(to, piece), source.subspan(from, piece));
    }
  }
  return list;
}

// A decoder with pages and slots of the size that real models have, small enough to draw.
constexpr const char* kModel = R"({
  "model_type": "inkling", "layers": ["swa", "full", "swa", "full", "swa", "full", "swa", "full"],
  "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
  "intermediate_size": 4096, "vocab_size": 4096, "sliding_window_size": 512, "d_rel": 4,
  "conv_kernel_size": 4, "state_chunk": 64, "rms_norm_eps": 1e-6, "logits_mup_width_multiplier": 4
})";

constexpr Tokens kPage{128};
constexpr Tokens kRestored{4096};
constexpr Tokens kTail{128};

struct Times {
  double load_wait = 0;      // to the first layer's event
  double forward_start = 0;  // to the first layer of the forward
  double ttft = 0;           // to the outputs in the host's memory
};

// One request whose prefix comes from staging memory, on a free-running device.
class RestoredForward {
 public:
  RestoredForward(Accelerator& accelerator, const model::Model& model)
      : accelerator_(accelerator), model_(model), device_(accelerator) {
    memory_.page = kPage;
    const std::int64_t pages = (kRestored + kTail) / kPage;
    for (Component component : kComponents) {
      const std::size_t c = index(component);
      const std::int64_t rows = component == Component::mamba ? 1 : pages;
      layouts_[c] = model.layout(component, kPage, false);
      const Bytes size = layouts_[c].row_bytes * (rows + 1);
      pools_[c] = accelerator.allocate("pool", size);
      staging_[c] = accelerator.staging(size);
      memory_.components[c] = {pools_[c].data(), &layouts_[c]};
    }
    for (std::int64_t page = 0; page < pages; ++page) {
      table_.push_back(Row{static_cast<std::uint32_t>(page + 1)});
    }
    tokens_.assign(kTail.index(), TokenId{1});
    segment_.start = kRestored;
    segment_.tokens = tokens_;
    segment_.full = segment_.swa = table_;
    segment_.q = Row{1};
    uploaded_ = accelerator.scratch(model::device_segment_bytes(segment_));
    segment_.uploaded = uploaded_.get();
    hidden_ = accelerator.scratch(model.activation_bytes() * kTail.value());
    logits_ = accelerator.scratch(model.output_bytes() * kTail.value());
    outputs_ = accelerator.staging(model.output_bytes() * kTail.value());
  }

  Times run(bool barrier) {
    const auto layers = static_cast<std::uint32_t>(model_.layers().size());
    std::vector<DeviceEvent> landed(layers);
    DeviceEvent started;
    DeviceEvent done;
    const WallClock::time_point start = WallClock::now();
    for (std::uint32_t i = 0; i < layers; ++i) {
      device_.enqueue(StreamKind::load, {.name = "load.layer", .copies = layer_copies(LayerId{i})});
      device_.record(StreamKind::load, landed[i]);
    }
    enqueue("forward.embed", [this] { model_.embed(segment_, hidden_.get()); });
    for (std::uint32_t i = 0; i < layers; ++i) {
      if (!barrier || i == 0) device_.wait(StreamKind::compute, landed[barrier ? layers - 1 : i]);
      if (i == 0) device_.record(StreamKind::compute, started);
      enqueue("forward.layer",
              [this, i] { model_.run_layer(LayerId{i}, segment_, memory_, hidden_.get()); });
    }
    enqueue("forward.head", [this] { head(); });
    device_.record(StreamKind::compute, done);
    Times times;
    const auto note = [&](const DeviceEvent& event, double& time) {
      device_.on_reached(event, [&time, start] {
        time = std::chrono::duration<double>(WallClock::now() - start).count();
      });
    };
    note(landed.front(), times.load_wait);
    note(started, times.forward_start);
    note(done, times.ttft);
    while (!device_.idle()) device_.run();
    return times;
  }

 private:
  void enqueue(std::string_view name, std::function<void()> body) {
    device_.enqueue(StreamKind::compute, {.name = name, .body = std::move(body)});
  }

  void head() {
    model_.head(segment_, hidden_.get(), logits_.get());
    CopyList copies;
    copies.add(outputs_.get(), logits_.get());
    accelerator_.copy(StreamKind::compute, copies, 0, 1);
  }

  CopyList layer_copies(LayerId layer) const {
    CopyList copies;
    for (std::size_t c = 0; c < pools_.size(); ++c) {
      const LayerPart range = layouts_[c].range_of(layer);
      if (range.size == Bytes{0}) continue;
      const std::size_t row = layouts_[c].row_bytes.index();
      const bool state = c == index(Component::mamba);
      const std::size_t rows = state ? 1 : static_cast<std::size_t>(kRestored / kPage);
      for (std::size_t i = 1; i <= rows; ++i) {
        const std::size_t at = i * row + range.offset.index();
        copies.add(pools_[c].subspan(at, range.size.index()),
                   staging_[c].get().subspan(at, range.size.index()));
      }
    }
    return copies;
  }

  Accelerator& accelerator_;
  const model::Model& model_;
  FreeRunningDevice device_;
  std::array<RowLayout, 3> layouts_;
  std::array<std::span<std::byte>, 3> pools_;
  std::array<OwnedBytes, 3> staging_;
  model::Memory memory_;
  std::vector<Row> table_;
  std::vector<TokenId> tokens_;
  model::Segment segment_;
  OwnedBytes uploaded_;
  OwnedBytes hidden_;
  OwnedBytes logits_;
  OwnedBytes outputs_;
};

Json times_json(std::vector<Times> times) {
  const auto middle = [&](double Times::* member) {
    std::vector<double> values;
    for (const Times& each : times) values.push_back(each.*member * 1e6);
    return median(values);
  };
  return Json::Object{{"load_wait_us", middle(&Times::load_wait)},
                      {"forward_start_us", middle(&Times::forward_start)},
                      {"ttft_us", middle(&Times::ttft)}};
}

}  // namespace

Check measure_bandwidth(Accelerator& accelerator) {
  constexpr std::size_t kRows = 256;
  constexpr std::size_t kLayers = 8;
  constexpr std::size_t kRowBytes = std::size_t{1} << 20;
  const Bytes size{static_cast<std::int64_t>(kRows * kRowBytes)};
  const std::span<std::byte> pool = accelerator.allocate("pool", size);
  const std::span<std::byte> other = accelerator.allocate("source", size);
  const OwnedBytes staging = accelerator.staging(size);
  CopyList pinned;
  pinned.add(pool, staging.get());
  CopyList device;
  device.add(pool, other);
  const double restore = rate(accelerator, scattered(pool, staging.get(), kRows, kLayers));
  const double one_pinned = rate(accelerator, pinned);
  const double rows = rate(accelerator, scattered(pool, other, kRows, kLayers));
  const double one_device = rate(accelerator, device);
  return {Json::Object{{"bytes", size.value()},
                       {"range_bytes", static_cast<std::int64_t>(kRowBytes / kLayers)},
                       {"restore_gb_per_s", restore},
                       {"pinned_copy_gb_per_s", one_pinned},
                       {"restore_to_pinned_copy", restore / one_pinned},
                       {"row_copy_gb_per_s", rows},
                       {"device_copy_gb_per_s", one_device},
                       {"restore_to_device_copy", restore / one_device}},
          0};
}

Check measure_overlap(Accelerator& accelerator) {
  const Result<model::ModelConfig> config = model::parse_model_config(kModel, "gpu_checks");
  if (!config) return {Json::Object{{"error", config.error().message}}, 1};
  const model::DeviceDecoder model(*config, model::draw_weights(*config, 1), "1", {}, accelerator);
  RestoredForward forward(accelerator, model);
  std::vector<Times> barrier;
  std::vector<Times> per_layer;
  for (int i = 0; i <= kRepeats; ++i) {
    const Times first = forward.run(true);
    const Times second = forward.run(false);
    if (i == 0) continue;  // warms up
    barrier.push_back(first);
    per_layer.push_back(second);
  }
  return {Json::Object{{"restored_tokens", kRestored.value()},
                       {"tail_tokens", kTail.value()},
                       {"barrier", times_json(barrier)},
                       {"per_layer", times_json(per_layer)}},
          0};
}

}  // namespace lockstep::bench
