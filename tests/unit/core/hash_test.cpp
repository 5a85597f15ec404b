#include "core/hash.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "catch.h"

namespace lockstep {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// FIPS 180-4 examples: "abc", the empty message, and the 448-bit message.
TEST_CASE("SHA-256 gives the published digests") {
  Sha256 sha;
  REQUIRE(sha.update(bytes_of("abc")).finish().hex() ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  REQUIRE(sha.finish().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  REQUIRE(sha.update(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))
              .finish()
              .hex() == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("SHA-256 does not depend on how the message is cut") {
  Sha256 sha;
  const PageHash whole = sha.update(bytes_of("abcdef")).finish();
  REQUIRE(sha.update(bytes_of("ab")).update(bytes_of("")).update(bytes_of("cdef")).finish() ==
          whole);
}

// xxHash's own sanity table: XXH3_64bits of the empty input with seed 0.
TEST_CASE("xxh3 gives the published digest of the empty input") {
  REQUIRE(xxh3({}) == 0x2d06800538d394c2ull);
  REQUIRE(xxh3(bytes_of("a")) != xxh3(bytes_of("b")));
  REQUIRE(xxh3(bytes_of("a"), 1) != xxh3(bytes_of("a"), 2));
}

TEST_CASE("page hashes order as their hex text does") {
  PageHash low;
  PageHash high;
  low.bytes[0] = std::byte{0x0f};
  high.bytes[0] = std::byte{0xf0};
  REQUIRE(low < high);
  REQUIRE(low.hex() < high.hex());
  REQUIRE(low.hex().size() == 64);
  REQUIRE(low.hex().starts_with("0f00"));
}

TEST_CASE("the run digest depends on the order and on the borders of what is folded") {
  RunDigest ab;
  ab.fold(1);
  ab.fold(2);
  RunDigest ba;
  ba.fold(2);
  ba.fold(1);
  REQUIRE(ab.value() != ba.value());

  RunDigest one;
  one.fold(bytes_of("ab"));
  one.fold(bytes_of("c"));
  RunDigest other;
  other.fold(bytes_of("a"));
  other.fold(bytes_of("bc"));
  REQUIRE(one.value() != other.value());
  REQUIRE(RunDigest{}.value() == RunDigest{}.value());
}

}  // namespace
}  // namespace lockstep
