#include "device/accelerator.h"

#include <cstring>
#include <string>
#include <vector>

#include "catch.h"
#include "core/random.h"
#include "device/cuda_accelerator.h"
#include "device/guarded_accelerator.h"
#include "device/memory_kernels.h"

namespace lockstep {
namespace {

using Buffer = std::vector<std::byte>;

Buffer random_bytes(std::size_t size, std::uint64_t seed) {
  SplitMix64 random(seed);
  Buffer bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

Buffer read(Accelerator& accelerator, std::span<const std::byte> device) {
  const std::span<const std::byte> view = accelerator.host_view(device);
  return {view.begin(), view.end()};
}

TEST_CASE("accelerator: bytes go to guarded memory and back, and ranges of it are new and clear") {
  GuardedAccelerator accelerator;
  const std::span<std::byte> device = accelerator.allocate("rows", Bytes{10000});
  REQUIRE(read(accelerator, device) == Buffer(10000));
  const Buffer bytes = random_bytes(10000, 1);
  accelerator.upload(StreamKind::load, device, bytes);
  REQUIRE(read(accelerator, device) == bytes);
  OwnedBytes target = accelerator.staging(Bytes{10000});
  CopyList out;
  out.add(target.get(), device);
  accelerator.copy(StreamKind::offload, out, 0, 1);
  REQUIRE(std::memcmp(target.get().data(), bytes.data(), bytes.size()) == 0);
}

TEST_CASE("accelerator: scratch is used again by whoever asks for the same size") {
  GuardedAccelerator accelerator;
  const std::byte* first = nullptr;
  {
    const OwnedBytes scratch = accelerator.scratch(Bytes{100});
    first = scratch.get().data();
  }
  const OwnedBytes again = accelerator.scratch(Bytes{100});
  const OwnedBytes other = accelerator.scratch(Bytes{100});
  REQUIRE(again.get().data() == first);
  REQUIRE(other.get().data() != first);
}

// Units as a launch on a device would have them: in any order.
template <class Kernel>
void run_backwards(const Kernel& kernel) {
  for (std::int64_t unit = kernel.units.total() - 1; unit >= 0; --unit) kernel.run(Warp{}, unit);
}

TEST_CASE("copy kernel: ranges of any size and alignment arrive, and nothing beside them changes") {
  SplitMix64 random(2);
  for (int round = 0; round < 40; ++round) {
    const Buffer source = random_bytes(200000, random.next());
    Buffer target(200000);
    Buffer expected(200000);
    CopyKernel kernel{};
    std::size_t at = 0;
    const std::size_t unit = round % 3 == 0 ? 16 : round % 3 == 1 ? 4 : 1;
    for (int i = 0; i < kMostRanges; ++i) {
      const std::size_t size = random.below(3) == 0 ? random.below(9000) : random.below(300);
      const std::size_t begin = (at + random.below(64) + unit - 1) / unit * unit;
      const std::size_t bytes = size / unit * unit;
      if (begin + bytes > target.size()) break;
      kernel.ranges[i] = {target.data() + begin, source.data() + begin,
                          static_cast<std::int64_t>(bytes)};
      kernel.units.add(static_cast<std::int64_t>(bytes));
      if (bytes > 0) std::memcpy(expected.data() + begin, source.data() + begin, bytes);
      at = begin + bytes;
    }
    run_backwards(kernel);
    REQUIRE(target == expected);
  }
}

TEST_CASE("fill kernel: repeats the word, its first bytes at the end, as the host does") {
  HostAccelerator host;
  for (const std::size_t size : {1u, 2u, 3u, 4u, 7u, 16u, 64u, 4096u, 4099u, 70000u}) {
    Buffer expected(size + 32);
    Buffer found(size + 32);
    host.fill(StreamKind::compute, std::vector{std::span(expected).subspan(16, size)}, 0x7149f2cau);
    FillKernel kernel{};
    kernel.word = 0x7149f2cau;
    kernel.ranges[0] = {found.data() + 16, static_cast<std::int64_t>(size)};
    kernel.units.add(static_cast<std::int64_t>(size));
    run_backwards(kernel);
    REQUIRE(found == expected);
  }
}

TEST_CASE("warp: the tree takes lanes in by halves") {
  Lanes<float> lanes;
  float by_hand[kWarpLanes];
  SplitMix64 random(3);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    lanes[lane] = by_hand[lane] = static_cast<float>(random.below(1u << 24)) * 0.37f;
  }
  for (const int half : {16, 8, 4, 2, 1}) {
    for (int lane = 0; lane < half; ++lane) by_hand[lane] += by_hand[lane + half];
  }
  REQUIRE(Warp{}.tree_sum<kWarpLanes>(lanes) == by_hand[0]);
}

TEST_CASE("accelerator: without a CUDA device the factory says what is missing") {
  const auto made = make_cuda_accelerator();
  if (made) return;  // tests/gpu has the rest
  const std::string& reason = made.error().message;
  const bool named = reason.find("this build has no CUDA code") != std::string::npos ||
                     reason.find("CUDA device") != std::string::npos;
  REQUIRE(named);
  REQUIRE(describe_cuda_device().error().message == reason);
}

}  // namespace
}  // namespace lockstep
