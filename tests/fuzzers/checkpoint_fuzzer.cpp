// libFuzzer: the readers of a checkpoint take any bytes, as config.json and as model.safetensors.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const Result<model::TensorFile> file = model::TensorFile::parse(bytes, "input");
  for (const auto& [name, tensor] : file ? file->tensors() : decltype(file->tensors()){}) {
    const Result<std::vector<double>> values = file->values(name);
    std::size_t count = 1;
    for (const std::int64_t extent : tensor.shape) count *= static_cast<std::size_t>(extent);
    if (values && values->size() != count) std::abort();
  }
  // No configuration is a model of no tensors.
  const std::string no_tensors("\2\0\0\0\0\0\0\0{}", 10);
  if (model::parse_checkpoint(bytes, no_tensors, "input")) std::abort();
  return 0;
}
