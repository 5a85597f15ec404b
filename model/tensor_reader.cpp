#include "model/tensor_reader.h"

#include <utility>

namespace lockstep::model {

std::vector<float> TensorReader::values(const std::string& name, const TensorShape& shape,
                                        double factor) {
  if (!take(name, shape)) return {};
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  const std::vector<double> elements = read(name, 0, count);
  std::vector<float> result;
  result.reserve(elements.size());
  for (const double element : elements) result.push_back(static_cast<float>(element * factor));
  return result;
}

std::vector<float> TensorReader::around_one(const std::string& name, std::int64_t count) {
  std::vector<float> result = values(name, {count});
  for (float& value : result) value += 1.0f;
  return result;
}

std::vector<float> TensorReader::matrix(const std::string& name, const TensorShape& shape,
                                        double factor) {
  std::int64_t rows = 1;
  if (!take(name, shape)) return {};
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const TensorRows all{0, rows};
  return matrix(name, shape, {&all, 1}, factor);
}

std::vector<float> TensorReader::matrix(const std::string& name, const TensorShape& shape,
                                        std::span<const TensorRows> rows, double factor) {
  if (!take(name, shape)) return {};
  const std::int64_t inputs = shape.back();
  std::int64_t outputs = 0;
  for (const TensorRows& range : rows) outputs += range.end - range.begin;
  std::vector<float> result(static_cast<std::size_t>(inputs * outputs));
  std::int64_t column = 0;
  for (const TensorRows& range : rows) {
    for (std::int64_t row = range.begin; row < range.end; ++row, ++column) {
      const std::vector<double> elements = read(name, row * inputs, inputs);
      if (failed()) return {};
      for (std::int64_t k = 0; k < inputs; ++k) {
        result[k * outputs + column] = static_cast<float>(elements[k] * factor);
      }
    }
  }
  return result;
}

std::vector<float> TensorReader::convolution(const std::string& name, std::int64_t channels,
                                             std::int64_t taps) {
  // The same transposition as that of a matrix of `channels` outputs.
  return matrix(name, {channels, 1, taps});
}

Result<void> TensorReader::finish() const {
  if (error_) return *error_;
  for (const auto& [name, tensor] : file_.tensors()) {
    if (asked_.contains(name)) continue;
    return Error{file_.source() + ": tensor \"" + name +
                 "\": no part of a model of this configuration"};
  }
  return {};
}

bool TensorReader::take(const std::string& name, const TensorShape& shape) {
  if (error_) return false;
  asked_.insert(name);
  const auto found = file_.tensors().find(name);
  const std::string where = file_.source() + ": tensor \"" + name + "\": ";
  const auto refuse = [&](const std::string& message) {
    error_ = Error{where + message};
    return false;
  };
  if (found == file_.tensors().end()) return refuse("missing");
  const Tensor& tensor = found->second;
  const bool good = tensor.type == "F32" || tensor.type == "BF16" || tensor.type == "F16";
  if (!good) return refuse("found " + tensor.type + ", expected F32, BF16 or F16");
  if (tensor.shape != shape) {
    return refuse("found " + describe(tensor) + ", expected " + describe({tensor.type, shape, {}}));
  }
  return true;
}

std::vector<double> TensorReader::read(const std::string& name, std::int64_t first,
                                       std::int64_t count) {
  Result<std::vector<double>> elements =
      file_.values(name, static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  if (elements) return std::move(*elements);
  error_ = elements.error();
  return {};
}

}  // namespace lockstep::model
