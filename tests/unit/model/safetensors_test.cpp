// The reader of safetensors files: files are written here byte by byte, from the format's
// description.
#include "model/safetensors.h"

#include <bit>
#include <limits>

#include "catch.h"

namespace lockstep::model {
namespace {

std::string little(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 255u);
  return text;
}

std::string file_of(const std::string& header, const std::string& data) {
  return little(header.size(), 8) + header + data;
}

// One tensor "x" of two bytes per element.
std::string halves(const std::string& type, const std::vector<std::uint16_t>& words) {
  std::string data;
  for (const std::uint16_t word : words) data += little(word, 2);
  return file_of(R"({"x": {"dtype": ")" + type + R"(", "shape": [)" + std::to_string(words.size()) +
                     R"(], "data_offsets": [0, )" + std::to_string(data.size()) + "]}}",
                 data);
}

std::string error_of(const std::string& bytes) {
  const Result<TensorFile> file = TensorFile::parse(bytes, "t");
  return file ? "no error" : file.error().message;
}

void require_error(const std::string& bytes, const std::string& part) {
  INFO(error_of(bytes));
  REQUIRE(error_of(bytes).find(part) != std::string::npos);
}

TEST_CASE("safetensors: types, shapes and elements of a file in any order of members") {
  const std::string header =
      R"({"b": {"shape": [2, 1], "data_offsets": [4, 12], "dtype": "F32"},)"
      R"( "__metadata__": {"format": "pt"},)"
      R"( "a": {"dtype": "I32", "shape": [], "data_offsets": [0, 4]},)"
      R"( "none": {"dtype": "F16", "shape": [3, 0], "data_offsets": [12, 12]}})";
  const std::string data = little(7, 4) + little(std::bit_cast<std::uint32_t>(1.5f), 4) +
                           little(std::bit_cast<std::uint32_t>(-0x1p-149f), 4);
  const Result<TensorFile> file = TensorFile::parse(file_of(header, data), "t");
  REQUIRE(file.ok());
  REQUIRE(file->tensors().size() == 3);
  REQUIRE(describe(file->tensors().at("b")) == "F32 [2, 1]");
  REQUIRE(*file->values("b") == std::vector<double>{1.5, -0x1p-149});
  REQUIRE(file->values("none")->empty());
  REQUIRE(file->values("a").error().message.find("found I32") != std::string::npos);
  REQUIRE(file->values("c").error().message.find("missing") != std::string::npos);
}

TEST_CASE("safetensors: F16 and BF16 are exact, subnormals and signs too") {
  const Result<TensorFile> half = TensorFile::parse(
      halves("F16", {0x3c00, 0xc000, 0x7bff, 0x0001, 0x83ff, 0x0400, 0x3555}), "t");
  REQUIRE(*half->values("x") ==
          std::vector<double>{1, -2, 65504, 0x1p-24, -1023 * 0x1p-24, 0x1p-14, 1365 * 0x1p-12});
  const Result<TensorFile> brain =
      TensorFile::parse(halves("BF16", {0x3f80, 0xc000, 0x7f7f, 0x0001, 0x3eab}), "t");
  REQUIRE(*brain->values("x") ==
          std::vector<double>{1, -2, 255 * 0x1p+120, 0x1p-133, 171 * 0x1p-9});
}

TEST_CASE("safetensors: elements that are not finite are refused") {
  for (const std::uint16_t word : std::vector<std::uint16_t>{0x7c00, 0xfc00, 0x7c01}) {
    const Result<TensorFile> file = TensorFile::parse(halves("F16", {0, word}), "t");
    REQUIRE(file->values("x").error().message.find("element 1 is not finite") != std::string::npos);
  }
  const Result<TensorFile> brain = TensorFile::parse(halves("BF16", {0x7fc0}), "t");
  REQUIRE_FALSE(brain->values("x").ok());
}

TEST_CASE("safetensors: a header that does not fit its file is refused") {
  require_error("", "0 bytes, expected at least 8");
  require_error("1234567", "7 bytes");
  require_error(little(1, 8), "a header of 1 bytes, but only 0 follow");
  require_error(little(std::numeric_limits<std::uint64_t>::max(), 8) + "{}",
                "18446744073709551615");
  require_error(little(0, 8), "empty file");
  require_error(file_of("[]", ""), "expected a JSON object");
  require_error(file_of("{", ""), "header");
  require_error(file_of(R"({"__metadata__": {"a": 1}})", ""), "__metadata__");
}

TEST_CASE("safetensors: tensors that do not fit the data are refused") {
  const auto one = [](const std::string& entry, std::size_t bytes) {
    return file_of(R"({"x": )" + entry + "}", std::string(bytes, '\0'));
  };
  const auto sized = [&](const std::string& shape, const std::string& offsets, std::size_t bytes) {
    return one(R"({"dtype": "F32", "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}",
               bytes);
  };
  REQUIRE(error_of(sized("[2]", "[0, 8]", 8)) == "no error");
  require_error(sized("[2]", "[0, 8]", 4), "data_offsets");
  require_error(sized("[2]", "[0, 4]", 4), "F32 [2] does not have 4 bytes");
  require_error(sized("[1]", "[4, 0]", 4), "data_offsets");
  require_error(sized("[1]", "[0, 4, 8]", 8), "data_offsets");
  require_error(sized("[1]", "[-4, 0]", 4), "data_offsets");
  require_error(sized("[1]", "[0, 1e3]", 4), "data_offsets");
  require_error(sized("[1]", "[0, 4]", 8), "tensors cover 4 of 8 bytes");
  require_error(sized("[1]", "[4, 8]", 8), "begins at byte 4 of the data, expected 0");
  require_error(sized("[-1]", "[0, 4]", 4), "shape");
  // 2^62 * 4 and 2^32 * 2^32 wrap around to 0 in 64 bits.
  require_error(sized("[4611686018427387904]", "[0, 0]", 0), "does not have 0 bytes");
  require_error(sized("[4294967296, 4294967296]", "[0, 0]", 0), "does not have 0 bytes");
  require_error(sized("[18446744073709551616]", "[0, 0]", 0), "shape");
  require_error(one(R"({"dtype": "F33", "shape": [], "data_offsets": [0, 4]})", 4),
                "unknown dtype \"F33\"");
  require_error(one("3", 0), "data_offsets");
  require_error(one(R"({"dtype": "F32", "shape": []})", 0), "data_offsets");
}

TEST_CASE("safetensors: tensors share no bytes, names are unique") {
  const std::string x = R"("x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";
  const std::string y = R"("y": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";
  require_error(file_of("{" + x + ", " + y + "}", std::string(4, '\0')), "begins at byte 0");
  require_error(file_of("{" + x + ", " + x + "}", std::string(4, '\0')), "once");
}

}  // namespace
}  // namespace lockstep::model
