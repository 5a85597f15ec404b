#include "model/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "core/json.h"

namespace lockstep::model {
namespace {

constexpr std::size_t kPrefix = 8;  // bytes that hold the size of the header

struct TypeSize {
  std::string_view name;
  std::int64_t bytes;
};
constexpr auto kTypes = std::to_array<TypeSize>({{"BOOL", 1},
                                                 {"U8", 1},
                                                 {"I8", 1},
                                                 {"F8_E5M2", 1},
                                                 {"F8_E4M3", 1},
                                                 {"U16", 2},
                                                 {"I16", 2},
                                                 {"F16", 2},
                                                 {"BF16", 2},
                                                 {"U32", 4},
                                                 {"I32", 4},
                                                 {"F32", 4},
                                                 {"U64", 8},
                                                 {"I64", 8},
                                                 {"F64", 8}});

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

std::optional<std::int64_t> natural(const Json& json) {
  const auto* number = json.as<std::int64_t>();
  return number != nullptr && *number >= 0 ? std::optional(*number) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> naturals(const Json* json) {
  const auto* items = json != nullptr ? json->as<Json::Array>() : nullptr;
  if (items == nullptr) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Json& item : *items) {
    const std::optional<std::int64_t> number = natural(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// Type size * product of the shape; none if it is more than `most`.
std::optional<std::int64_t> size_of(std::int64_t type_bytes, std::span<const std::int64_t> shape,
                                    std::int64_t most) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t size = type_bytes;
  for (const std::int64_t extent : shape) {
    if (extent > most / size) return std::nullopt;
    size *= extent;
  }
  return size <= most ? std::optional(size) : std::nullopt;
}

struct Entry {
  Tensor tensor;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// One member of the header, or what is wrong with it.
Result<Entry> read_entry(const Json& json, std::span<const std::byte> data) {
  const auto* members = json.as<Json::Object>();
  const Json* type = json.find("dtype");
  const auto shape = naturals(json.find("shape"));
  const auto offsets = naturals(json.find("data_offsets"));
  if (members == nullptr || members->size() != 3 || type == nullptr ||
      type->as<std::string>() == nullptr) {
    return Error{R"(expected {"dtype": type, "shape": [...], "data_offsets": [begin, end]})"};
  }
  const auto* known = std::ranges::find(kTypes, *type->as<std::string>(), &TypeSize::name);
  if (known == kTypes.end()) return Error{"unknown dtype " + describe(*type)};
  if (!shape) return Error{"shape: expected an array of integers >= 0"};
  const auto size = static_cast<std::int64_t>(data.size());
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1] || (*offsets)[1] > size) {
    return Error{"data_offsets: expected [begin, end] with begin <= end <= " +
                 std::to_string(size)};
  }
  Entry entry{{std::string(known->name), *shape, {}}, (*offsets)[0], (*offsets)[1]};
  const auto expected = size_of(known->bytes, *shape, size);
  if (!expected || *expected != entry.end - entry.begin) {
    return Error{describe(entry.tensor) + " does not have " +
                 std::to_string(entry.end - entry.begin) + " bytes"};
  }
  entry.tensor.bytes = data.subspan(static_cast<std::size_t>(entry.begin),
                                    static_cast<std::size_t>(entry.end - entry.begin));
  return entry;
}

Result<void> check_metadata(const Json& json) {
  const auto* members = json.as<Json::Object>();
  const auto is_text = [](const JsonMember& member) {
    return member.value.as<std::string>() != nullptr;
  };
  if (members != nullptr && std::ranges::all_of(*members, is_text)) return {};
  return Error{"expected an object of strings"};
}

float from_half(std::uint32_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 31u;
  const std::uint32_t mantissa = half & 1023u;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// The element that starts at `bytes`.
double element(std::string_view type, std::span<const std::byte> bytes) {
  const std::uint64_t word = little_endian(bytes);
  if (type == "F64") return std::bit_cast<double>(word);
  const auto low = static_cast<std::uint32_t>(word);
  if (type == "F32") return std::bit_cast<float>(low);
  return type == "BF16" ? std::bit_cast<float>(low << 16) : from_half(low);
}

}  // namespace

std::string describe(const Tensor& tensor) {
  std::string text = tensor.type + " [";
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  }
  return text + "]";
}

Result<TensorFile> TensorFile::parse(std::string text, const std::string& source) {
  if (text.size() < kPrefix) {
    return Error{source + ": " + std::to_string(text.size()) + " bytes, expected at least 8"};
  }
  TensorFile file;
  file.source_ = source;
  const auto given = std::as_bytes(std::span(text));
  file.bytes_.assign(given.begin(), given.end());
  const std::span<const std::byte> bytes = file.bytes_;
  const std::uint64_t header = little_endian(bytes.first(kPrefix));
  if (header > bytes.size() - kPrefix) {
    return Error{source + ": a header of " + std::to_string(header) + " bytes, but only " +
                 std::to_string(bytes.size() - kPrefix) + " follow"};
  }
  const std::span<const std::byte> data = bytes.subspan(kPrefix + header);
  const Result<Json> json =
      parse_json(std::string_view(text).substr(kPrefix, header), source + ": header");
  if (!json) return json.error();
  const auto* members = json->as<Json::Object>();
  if (members == nullptr) return Error{source + ": header: expected a JSON object"};

  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const JsonMember& member : *members) {
    const std::string where = source + ": tensor \"" + member.key + "\": ";
    if (member.key == "__metadata__") {
      const Result<void> good = check_metadata(member.value);
      if (!good) return Error{source + ": __metadata__: " + good.error().message};
      continue;
    }
    Result<Entry> entry = read_entry(member.value, data);
    if (!entry) return Error{where + entry.error().message};
    ranges.emplace_back(entry->begin, entry->end);
    file.tensors_.emplace(member.key, std::move(entry->tensor));
  }
  std::ranges::sort(ranges);
  std::int64_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != covered) {
      return Error{source + ": a tensor begins at byte " + std::to_string(begin) +
                   " of the data, expected " + std::to_string(covered)};
    }
    covered = end;
  }
  if (covered != static_cast<std::int64_t>(data.size())) {
    return Error{source + ": tensors cover " + std::to_string(covered) + " of " +
                 std::to_string(data.size()) + " bytes of data"};
  }
  return file;
}

Result<std::vector<double>> TensorFile::values(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return values(name, 0, 0);
  std::size_t count = 1;
  for (const std::int64_t extent : found->second.shape) count *= static_cast<std::size_t>(extent);
  return values(name, 0, count);
}

Result<std::vector<double>> TensorFile::values(std::string_view name, std::size_t first,
                                               std::size_t count) const {
  const auto found = tensors_.find(name);
  const std::string where = source_ + ": tensor \"" + std::string(name) + "\": ";
  if (found == tensors_.end()) return Error{where + "missing"};
  const Tensor& tensor = found->second;
  const auto* type = std::ranges::find(kTypes, tensor.type, &TypeSize::name);
  const bool real =
      tensor.type == "F64" || tensor.type == "F32" || tensor.type == "BF16" || tensor.type == "F16";
  if (!real) return Error{where + "found " + tensor.type + ", expected F64, F32, BF16 or F16"};
  const auto width = static_cast<std::size_t>(type->bytes);
  CHECK("safetensors.range", (first + count) * width <= tensor.bytes.size());
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = element(tensor.type, tensor.bytes.subspan((first + i) * width, width));
    if (!std::isfinite(values[i])) {
      return Error{where + "element " + std::to_string(first + i) + " is not finite"};
    }
  }
  return values;
}

}  // namespace lockstep::model
