// The numeric decoder on an accelerator (make_model() with one).
//
// A layer runs over all tokens of a segment at once, kernel by kernel; the workspace between them
// is the model's own. Only the scores of attention go by tiles of queries, as many as fit.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "model/decoder.h"
#include "model/decoder_kernels.h"
#include "model/device_segment.h"
#include "model/recurrent_kernels.h"
#include "model/rope.h"

namespace lockstep::model {

// Nothing, or an error that names the first part of the decoder that has no kernels yet.
Result<void> check_device_kernels(const ModelConfig& config);

class DeviceDecoder final : public Decoder {
 public:
  // Uploads the weights. REQUIRES: check_device_kernels() accepted `config`.
  DeviceDecoder(const ModelConfig& config, Weights weights, const std::string& weights_name,
                Shard shard, Accelerator& accelerator);

  void embed(const Segment& segment, std::span<std::byte> activations) const override;
  void run_layer(LayerId layer, const Segment& segment, const Memory& memory,
                 std::span<std::byte> activations) const override;
  void run_heads(LayerId layer, const Segment& segment, const Memory& memory,
                 std::span<const std::byte> activations,
                 std::span<std::byte> partial) const override;
  void combine_heads(LayerId layer, const Segment& segment, const Memory& memory,
                     std::span<const std::span<const std::byte>> partials,
                     std::span<std::byte> activations) const override;
  void head(const Segment& segment, std::span<const std::byte> activations,
            std::span<std::byte> outputs) const override;
  void clear_slot(std::span<std::byte> slot) const override;

 private:
  // Of one layer, on the device. What the layer does not have is empty.
  struct LayerOnDevice {
    const float* input_norm;
    const float* query;
    const float* attention_gate;
    const float* key;
    const float* value;
    const float* relative;
    const float* query_norm;
    const float* key_norm;
    const float* profiles;
    const float* output;
    const float* mlp_norm;
    const float* gate;
    const float* up;
    const float* down;
    std::array<const float*, 4> convolutions;  // in the order of a slot
    const float* in;                           // of a recurrent mixer, so are the next ones
    const float* conv;
    const float* conv_bias;  // null: none
    const float* a_log;
    const float* dt_bias;
    const float* skip;
    const float* decay;
    const float* delta_gate;
    const float* norm;
    const float* out;
  };
  // What lies between two kernels.
  enum class Work {
    normed,
    query,
    relative,
    key,
    value,
    mixed,
    attention,
    gate,
    up,
    mlp,
    scores,
    sums,
    adapter,
    projected,
    convolved,
    delta_query,
    delta_key,
    decay,
    beta,
    recurrent,
    update,
    count
  };

  // One layer of one segment: what its kernels have in common.
  struct Job {
    LayerId layer;
    const Segment& segment;
    const Memory& memory;
    DeviceSegment device;
    const LayerOnDevice& weights;
    DecoderShape shape;
    Index tokens;
  };

  Job job(LayerId layer, const Segment& segment, const Memory& memory) const;
  const float* upload(std::string_view name, const std::vector<float>& values) const;
  // At least so many floats; what was there may be gone.
  float* work(Work name, Index floats) const;
  template <class Kernel>
  void start(const Kernel& kernel) const {
    launch(accelerator_, StreamKind::compute, kernel, kernel.units());
  }
  struct HeadNorm {
    Index heads = 1;
    Index width = 0;
    Index weight_stride = 0;
    Index start = 0;  // position of the first row in the target
    float divisor = 1.0f;
    float eps = 0;
  };
  void norm(const float* x, const float* weight, Index rows, const HeadNorm& shape,
            const DeviceRows& target) const;
  void project(const float* x, Index rows, Index inputs, const float* weights, Index outputs,
               float* y) const {
    project_strided(x, inputs, rows, inputs, weights, outputs, y);
  }
  void project_strided(const float* x, Index x_stride, Index rows, Index inputs,
                       const float* weights, Index outputs, float* y) const;

  // The layer's part of a slot, and the rows of K (skip 0) or V.
  float* state(const Job& job, Row slot) const;
  DeviceRows pages(const Job& job, bool values) const;
  // Floats in front of a convolution's rows in a slot's part, and its channels.
  Index conv_offset(const Job& job, std::size_t convolution) const;
  Index conv_channels(const Job& job, std::size_t convolution) const;
  void convolve(const Job& job, std::size_t convolution, const float* inputs,
                const DeviceRows& target, Index start_at, bool adds) const;
  // Of the convolutions from `begin` on, whose inputs are these.
  void save_states(const Job& job, std::size_t begin, std::span<const float* const> inputs) const;
  // Into the snapshots, and then into Q.
  void save(const Job& job, SaveStateKernel kernel) const;

  // Turns the heads of all tokens by their positions, if the model has rotary positions.
  void turn(const Job& job, Index heads, float* rows) const;
  // Cosines and sines of positions [0, end), on the device.
  const float* turns(Index end) const;

  // Norms the inputs of a layer into Work::normed, where the functions below find them.
  void norm_inputs(const Job& job, const float* hidden) const;
  // Attention as far as the output projection; leaves the inputs of the convolutions on K and V.
  void heads(const Job& job, float* projected) const;
  void place_keys(const Job& job, float* key) const;
  void place_values(const Job& job, const float* value) const;
  void attend(const Job& job) const;
  // Adds the projected attention, by way of its convolution if there is one.
  void add_attention(const Job& job, const float* projected, float* hidden) const;
  void mlp(const Job& job, float* hidden) const;

  // The update of the layer's recurrent mixer, [tokens][hidden]; keeps its states.
  void recurrent(const Job& job, Mixer mixer, float* update) const;
  void mamba2(const Job& job, const RecurrentSizes& sizes) const;
  void delta_rule(const Job& job, Mixer mixer, const RecurrentSizes& sizes) const;
  DeviceStates states(const Job& job) const;

  Accelerator& accelerator_;
  std::vector<LayerOnDevice> layers_on_device_;
  const float* embedding_ = nullptr;
  const float* embedding_norm_ = nullptr;
  const float* final_norm_ = nullptr;
  const float* head_ = nullptr;
  std::optional<Rope> rotary_;
  mutable const float* turns_ = nullptr;  // [position][cosines, then sines]
  mutable Index turns_end_ = 0;
  mutable std::array<std::span<std::byte>, static_cast<std::size_t>(Work::count)> work_;
};

}  // namespace lockstep::model
