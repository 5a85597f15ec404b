// What a GPU computes against what the host computes, and how fast it restores. Usage:
//   gpu_checks functions|reductions|copies|bandwidth|overlap [--emulated] [--stride N]
// Prints one JSON object. Exit status: 1 if bits differ, 77 without a device, which it names.
#include "gpu_checks.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/random.h"
#include "device/cuda_accelerator.h"
#include "device/guarded_accelerator.h"
#include "map_kernels.h"
#include "model/decoder_kernels.h"

namespace lockstep::bench {
namespace {

using model::kernels::Index;

constexpr std::size_t kBatch = std::size_t{1} << 20;
constexpr int kSkipped = 77;

Bytes bytes_of(std::size_t floats) {
  return Bytes{static_cast<std::int64_t>(floats * sizeof(float))};
}

// Floats on the device.
class DeviceFloats {
 public:
  DeviceFloats(Accelerator& accelerator, std::size_t count)
      : accelerator_(accelerator), bytes_(accelerator.scratch(bytes_of(count))) {}
  DeviceFloats(Accelerator& accelerator, const std::vector<float>& values)
      : DeviceFloats(accelerator, values.size()) {
    put(values);
  }

  void put(std::span<const float> values) {
    const auto bytes = std::as_bytes(values);
    accelerator_.upload(StreamKind::compute, bytes_.get().first(bytes.size()), bytes);
  }
  float* get() const { return reinterpret_cast<float*>(bytes_.get().data()); }
  std::vector<float> read() const {
    accelerator_.synchronize();
    const std::span<const std::byte> view = accelerator_.host_view(bytes_.get());
    std::vector<float> values(view.size() / sizeof(float));
    std::memcpy(values.data(), view.data(), view.size());
    return values;
  }

 private:
  Accelerator& accelerator_;
  OwnedBytes bytes_;
};

std::uint32_t canonical(float value) {
  return value != value ? 0x7fc00000u : detmath::bits(value);
}

std::int64_t differing(std::span<const float> a, std::span<const float> b) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += canonical(a[i]) != canonical(b[i]) ? 1 : 0;
  return count;
}

std::vector<float> random_floats(std::size_t count, SplitMix64& random) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(static_cast<std::int64_t>(random.below(1u << 24)) - (1 << 23)) *
            0x1p-23f;
  }
  return values;
}

template <class Function>
void sweep(Accelerator& accelerator, std::uint64_t stride, Json::Object& figures,
           std::int64_t& mismatches) {
  DeviceFloats inputs(accelerator, kBatch);
  DeviceFloats outputs(accelerator, kBatch);
  std::vector<float> values;
  std::int64_t found = 0;
  const auto flush = [&] {
    inputs.put(values);
    const auto count = static_cast<std::int64_t>(values.size());
    launch(accelerator, StreamKind::compute,
           MapKernel<Function>{inputs.get(), count, outputs.get()},
           (count + kWarpLanes - 1) / kWarpLanes);
    const std::vector<float> computed = outputs.read();
    for (float& value : values) value = Function::run(value);
    found += differing(values, std::span(computed).first(values.size()));
    values.clear();
  };
  for (std::uint64_t word = 0; word <= 0xffffffffu; word += stride) {
    values.push_back(detmath::from_bits(static_cast<std::uint32_t>(word)));
    if (values.size() == kBatch) flush();
  }
  flush();
  figures.push_back({std::string(Function::kName), found});
  mismatches += found;
}

template <class Kernel>
void start(Accelerator& accelerator, const Kernel& kernel) {
  launch(accelerator, StreamKind::compute, kernel, kernel.units());
}

std::int64_t norm_mismatches(Accelerator& accelerator, SplitMix64& random, Index rows,
                             Index width) {
  const std::vector<float> x = random_floats(rows * width, random);
  const std::vector<float> weight = random_floats(width, random);
  std::vector<float> expected(x.size());
  for (Index row = 0; row < rows; ++row) {
    model::kernels::rms_norm(x.data() + row * width, weight.data(), width, 1e-6f,
                             expected.data() + row * width);
  }
  const DeviceFloats in(accelerator, x);
  const DeviceFloats scale(accelerator, weight);
  const DeviceFloats out(accelerator, x.size());
  model::DeviceRows target;
  target.base = out.get();
  target.width = width;
  const model::NormKernel kernel{in.get(), scale.get(), 0, 1, width, 1e-6f, 1.0f, 0, target};
  launch(accelerator, StreamKind::compute, kernel, rows);
  return differing(expected, out.read());
}

template <Index kRows>
std::int64_t project_mismatches(Accelerator& accelerator, SplitMix64& random, Index rows,
                                Index inputs, Index outputs) {
  const std::vector<float> x = random_floats(rows * inputs, random);
  const std::vector<float> weights = random_floats(inputs * outputs, random);
  std::vector<float> expected(rows * outputs);
  for (Index row = 0; row < rows; ++row) {
    for (Index j = 0; j < outputs; ++j) {
      model::kernels::project<float, 1>(x.data() + row * inputs, inputs, weights.data() + j,
                                        outputs, expected.data() + row * outputs + j);
    }
  }
  const DeviceFloats in(accelerator, x);
  const DeviceFloats matrix(accelerator, weights);
  const DeviceFloats out(accelerator, expected.size());
  start(accelerator, model::ProjectKernel<kRows>{in.get(), inputs, rows, inputs, matrix.get(),
                                                 outputs, out.get()});
  return differing(expected, out.read());
}

std::int64_t heads_mismatches(Accelerator& accelerator, SplitMix64& random, Index rows, Index heads,
                              Index outputs) {
  constexpr Index kDim = 8;
  const std::vector<float> x = random_floats(rows * heads * kDim, random);
  const std::vector<float> weights = random_floats(heads * kDim * outputs, random);
  std::vector<float> expected(rows * outputs);
  for (Index row = 0; row < rows; ++row) {
    for (Index j = 0; j < outputs; ++j) {
      model::kernels::project_heads<float, 1>(x.data() + row * heads * kDim, heads, kDim,
                                              weights.data() + j, outputs,
                                              expected.data() + row * outputs + j);
    }
  }
  const DeviceFloats in(accelerator, x);
  const DeviceFloats matrix(accelerator, weights);
  const DeviceFloats out(accelerator, expected.size());
  start(accelerator,
        model::ProjectHeadsKernel{in.get(), rows, heads, kDim, matrix.get(), outputs, out.get()});
  return differing(expected, out.read());
}

std::int64_t weigh_mismatches(Accelerator& accelerator, SplitMix64& random, Index position) {
  model::AttentionShape shape{};
  shape.heads = shape.group = shape.count = 1;
  shape.start = position;
  shape.blocks = position / model::kernels::kBlock + 1;
  std::vector<float> scores = random_floats(shape.blocks * model::kernels::kBlock, random);
  const DeviceFloats in(accelerator, scores);
  const DeviceFloats sum(accelerator, 1);
  start(accelerator, model::WeighKernel{shape, in.get(), sum.get()});
  const float expected = model::kernels::weigh(scores.data(), std::ssize(scores));
  return differing(scores, in.read()) + differing(std::vector{expected}, sum.read());
}

}  // namespace

Check check_functions(Accelerator& accelerator, std::uint64_t stride) {
  Check check;
  Json::Object figures{{"stride", static_cast<std::int64_t>(stride)}};
  sweep<Exp>(accelerator, stride, figures, check.mismatches);
  sweep<ExpNeg>(accelerator, stride, figures, check.mismatches);
  sweep<Log>(accelerator, stride, figures, check.mismatches);
  sweep<Log1pUnit>(accelerator, stride, figures, check.mismatches);
  sweep<Sigmoid>(accelerator, stride, figures, check.mismatches);
  sweep<Silu>(accelerator, stride, figures, check.mismatches);
  sweep<Softplus>(accelerator, stride, figures, check.mismatches);
  sweep<Rsqrt>(accelerator, stride, figures, check.mismatches);
  check.figures = std::move(figures);
  return check;
}

Check check_reductions(Accelerator& accelerator) {
  SplitMix64 random(1);
  std::int64_t norm = 0;
  std::int64_t project = 0;
  std::int64_t heads = 0;
  std::int64_t weigh = 0;
  for (const Index width : {1, 8, 31, 32, 33, 100, 1024, 4097}) {
    norm += norm_mismatches(accelerator, random, 5, width);
    project += project_mismatches<1>(accelerator, random, 1, width, 130);
    project += project_mismatches<8>(accelerator, random, 19, width, 132);
    weigh += weigh_mismatches(accelerator, random, width);
  }
  for (const Index count : {1, 2, 4, 8, 32, 64}) {
    heads += heads_mismatches(accelerator, random, 3, count, 130);
    heads += heads_mismatches(accelerator, random, 4, count, 64);
  }
  Json::Object figures{
      {"norm", norm}, {"project", project}, {"project_heads", heads}, {"weigh", weigh}};
  return {std::move(figures), norm + project + heads + weigh};
}

Check check_copies(Accelerator& accelerator) {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  SplitMix64 random(2);
  const std::span<std::byte> first = accelerator.allocate("source", Bytes{kSize});
  const std::span<std::byte> second = accelerator.allocate("target", Bytes{kSize});
  const OwnedBytes sent = accelerator.staging(Bytes{kSize});
  const OwnedBytes returned = accelerator.staging(Bytes{kSize});
  for (std::byte& byte : sent.get()) byte = static_cast<std::byte>(random.next());
  std::vector<std::byte> expected(kSize);
  CopyList there;
  CopyList across;
  CopyList back;
  for (std::size_t at = 0; at < kSize;) {
    const std::size_t size = std::min<std::size_t>(1 + random.below(20000), kSize - at);
    there.add(first.subspan(at, size), sent.get().subspan(at, size));
    if (random.below(4) != 0) {
      across.add(second.subspan(at, size), first.subspan(at, size));
      std::memcpy(expected.data() + at, sent.get().data() + at, size);
    }
    back.add(returned.get().subspan(at, size), second.subspan(at, size));
    at += size;
  }
  for (const CopyList* list : {&there, &across, &back}) {
    for (std::size_t piece = 0; piece < 3; ++piece) {
      accelerator.copy(StreamKind::load, *list, piece, 3);
    }
  }
  accelerator.synchronize();
  std::int64_t wrong = std::memcmp(returned.get().data(), expected.data(), kSize) == 0 ? 0 : 1;
  for (const std::size_t size : {4u, 64u, 1000u, 4099u, 70001u}) {
    accelerator.fill(StreamKind::compute, std::vector{first.subspan(16, size)}, 0x7149f2cau);
    accelerator.synchronize();
    const std::span<const std::byte> view = accelerator.host_view(first.subspan(16, size));
    for (std::size_t i = 0; i < size; ++i) {
      wrong += view[i] == static_cast<std::byte>(0x7149f2cau >> i % 4 * 8 & 0xffu) ? 0 : 1;
    }
  }
  return {Json::Object{{"wrong", wrong}}, wrong};
}

namespace {

int run(const std::string& name, Accelerator& accelerator, std::uint64_t stride) {
  Check check;
  if (name == "functions") {
    check = check_functions(accelerator, stride);
  } else if (name == "reductions") {
    check = check_reductions(accelerator);
  } else if (name == "copies") {
    check = check_copies(accelerator);
  } else if (name == "bandwidth") {
    check = measure_bandwidth(accelerator);
  } else if (name == "overlap") {
    check = measure_overlap(accelerator);
  } else {
    std::fprintf(stderr, "gpu_checks: no check is called %s\n", name.c_str());
    return 2;
  }
  std::printf("%s\n", to_text(check.figures).c_str());
  return check.mismatches == 0 ? 0 : 1;
}

int main_with(const std::vector<std::string>& arguments) {
  std::string name;
  bool emulated = false;
  std::uint64_t stride = 1009;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--emulated") {
      emulated = true;
    } else if (arguments[i] == "--stride" && i + 1 < arguments.size()) {
      stride = std::max(1ull, std::strtoull(arguments[++i].c_str(), nullptr, 10));
    } else {
      name = arguments[i];
    }
  }
  if (emulated) {
    GuardedAccelerator accelerator;
    return run(name, accelerator, stride);
  }
  const auto accelerator = make_cuda_accelerator();
  if (accelerator) return run(name, **accelerator, stride);
  std::printf("skipped: %s\n", accelerator.error().message.c_str());
  return kSkipped;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::main_with({argv + 1, argv + argc});
}
