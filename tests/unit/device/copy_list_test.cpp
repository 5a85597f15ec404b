#include "device/copy_list.h"

#include <algorithm>
#include <vector>

#include "catch.h"
#include "core/check.h"

namespace lockstep {
namespace {

std::vector<std::byte> counted(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

TEST_CASE("the pieces of a copy copy every byte once, whatever their number") {
  const std::vector<std::byte> source = counted(72);
  for (std::size_t pieces = 1; pieces <= 12; ++pieces) {
    std::vector<std::byte> target(72);
    CopyList list;
    list.add(std::span(target).first(24), std::span(source).first(24));
    list.add(std::span(target).subspan(24, 0), std::span(source).subspan(24, 0));
    list.add(std::span(target).subspan(24, 8), std::span(source).subspan(24, 8));
    list.add(std::span(target).subspan(32), std::span(source).subspan(32));
    REQUIRE(list.size() == Bytes{72});
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::vector<std::byte> before = target;
      list.copy(piece, pieces);
      // A piece touches whole words, and nothing that an earlier one has copied.
      for (std::size_t word = 0; word < 9; ++word) {
        const auto differs = [&](std::size_t i) { return target[i] != before[i]; };
        std::size_t changed = 0;
        for (std::size_t i = word * 8; i < word * 8 + 8; ++i) changed += differs(i) ? 1 : 0;
        REQUIRE((changed == 0 || changed == 8));
        if (changed > 0) REQUIRE(before[word * 8] == std::byte{0});
      }
    }
    REQUIRE(target == source);
  }
}

TEST_CASE("three pieces of 72 bytes are 24 bytes each") {
  const std::vector<std::byte> source = counted(72);
  std::vector<std::byte> target(72);
  CopyList list;
  list.add(target, source);
  list.copy(1, 3);
  std::vector<std::byte> wanted(72);
  std::copy_n(source.begin() + 24, 24, wanted.begin() + 24);
  REQUIRE(target == wanted);
}

TEST_CASE("spans of different sizes are refused") {
  std::vector<std::byte> target(8);
  CopyList list;
  REQUIRE(list.empty());
  REQUIRE_THROWS_AS(list.add(target, counted(16)), ContractFailure);
}

}  // namespace
}  // namespace lockstep
