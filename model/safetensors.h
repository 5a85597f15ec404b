// Reads a safetensors file, from whomever it comes.
//
//   | header size, 8 bytes, little endian | header, JSON | data |
//   header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//            "__metadata__": {"key": "text"}}
//
// Row-major and little endian; offsets count from the first byte of the data. The format is that of
// https://github.com/huggingface/safetensors: tensors cover the data without gaps and without
// overlaps, names are unique, and the size of each follows from its type and shape. All of this is
// checked before anything of the data is looked at, and no size of the header is believed before
// it has been compared with the size of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace lockstep::model {

struct Tensor {
  std::string type;  // as the header writes it: "F32", "BF16", "I64", ...
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// "F32 [2, 3]".
std::string describe(const Tensor& tensor);

class TensorFile {
 public:
  // Errors name `source`, the tensor, what was found and what was expected.
  static Result<TensorFile> parse(std::string bytes, const std::string& source);

  // Tensors point into the file's bytes.
  TensorFile(TensorFile&&) = default;
  TensorFile& operator=(TensorFile&&) = default;

  const std::string& source() const { return source_; }
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

  // Elements of a tensor of this file in fp64, all of them or `count` from `first` on: exact for
  // F64, F32, BF16 and F16. Other types, and elements that are not finite, are errors. REQUIRES: a
  // part lies in the tensor.
  Result<std::vector<double>> values(std::string_view name) const;
  Result<std::vector<double>> values(std::string_view name, std::size_t first,
                                     std::size_t count) const;

 private:
  TensorFile() = default;

  std::string source_;
  std::vector<std::byte> bytes_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace lockstep::model
