// Takes the tensors of a checkpoint into the order of Weights, and keeps book of which were asked
// for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/safetensors.h"

namespace lockstep::model {

using TensorShape = std::vector<std::int64_t>;

// Rows [begin, end) of a tensor, all its dimensions but the last taken together.
struct TensorRows {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Remembers the first error; after it, everything that is read is empty.
class TensorReader {
 public:
  explicit TensorReader(const TensorFile& file) : file_(file) {}

  bool has(std::string_view name) const { return file_.tensors().contains(name); }
  bool failed() const { return error_.has_value(); }

  // All elements in their order, times `factor`.
  std::vector<float> values(const std::string& name, const TensorShape& shape, double factor = 1);
  // Elements of a norm that is stored as the distance from 1.
  std::vector<float> around_one(const std::string& name, std::int64_t count);
  // A linear map, stored [outputs][inputs], as [inputs][outputs]: all outputs, or those of `rows`,
  // one range behind the other. The last dimension of `shape` is the inputs.
  std::vector<float> matrix(const std::string& name, const TensorShape& shape, double factor = 1);
  std::vector<float> matrix(const std::string& name, const TensorShape& shape,
                            std::span<const TensorRows> rows, double factor = 1);
  // [channels][1][taps] as [taps][channels].
  std::vector<float> convolution(const std::string& name, std::int64_t channels, std::int64_t taps);

  // The first error, or the first tensor that nobody asked for.
  Result<void> finish() const;

 private:
  // Whether the tensor is there with that shape and a type whose elements are weights.
  bool take(const std::string& name, const TensorShape& shape);
  std::vector<double> read(const std::string& name, std::int64_t first, std::int64_t count);

  const TensorFile& file_;
  std::set<std::string, std::less<>> asked_;
  std::optional<Error> error_;
};

}  // namespace lockstep::model
