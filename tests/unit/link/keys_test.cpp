#include "link/keys.h"

#include <set>

#include "catch.h"

namespace lockstep {
namespace {

// The expected digests come from Python, not from this code:
//   import hashlib, struct
//   field = lambda b: b'\0' if b is None else b'\1' + struct.pack('<I', len(b)) + b
//   ns = lambda *f: hashlib.sha256(b''.join(field(x) for x in (b'lockstep-1',) + f))
//   ns(b'model-a', b'layout-b', None, None).hexdigest()                    # and so on
//   h = ns(b'model-a', b'layout-b', None, None).digest()
//   for page in ((1, 2, 3), (4, 70000, 4294967295)):
//     h = hashlib.sha256(h + struct.pack('<3I', *page)).digest(); print(h.hex())
constexpr std::string_view kPlain =
    "270b5184db664f3121a5025653edc846368512485ec1b1a00a2277b65b2bfd5c";
constexpr std::string_view kFirstPage =
    "54f7530a20dbe4c06c284c0ed1167d9bffe5f8f8ae591f115df1a6c3a775b83d";
constexpr std::string_view kSecondPage =
    "544db86dac75c86abd1013b1878cb265c72c988be64fd2f9f4863e788898d5ef";

NamespaceFields fields(std::optional<std::string> extra_key, std::optional<std::string> salt) {
  return {"model-a", "layout-b", std::move(extra_key), std::move(salt)};
}

std::vector<TokenId> tokens(std::initializer_list<std::uint32_t> values) {
  std::vector<TokenId> tokens;
  for (std::uint32_t value : values) tokens.push_back(TokenId{value});
  return tokens;
}

TEST_CASE("the namespace hash is SHA-256 over the length-prefixed fields") {
  const auto hex = [](auto... values) {
    return KeyScheme(Tokens{3}, RankId{0}, 1).namespace_hash(fields(values...)).hex();
  };
  REQUIRE(hex(std::nullopt, std::nullopt) == kPlain);
  REQUIRE(hex("", std::nullopt) ==
          "7f49a3abcefdfd68cf377429a2c13c8389d185e496ba774ce0358a1d44767493");
  REQUIRE(hex(std::nullopt, "") ==
          "accaa1b34866ba4cb2abc7030ba019da2069aad669e53a70f05c720c5315e28d");
  REQUIRE(hex("adapter-7", "tenant-1") ==
          "d390031f7c14896c8021233b077bfe5699d7c45f2c3fb654377c64bef48e0b86");
}

TEST_CASE("fields never run into each other") {
  const KeyScheme keys(Tokens{3}, RankId{0}, 1);
  const std::vector<NamespaceFields> distinct{fields(std::nullopt, std::nullopt),
                                              fields("", std::nullopt),
                                              fields(std::nullopt, ""),
                                              fields("", ""),
                                              fields("ab", "c"),
                                              fields("a", "bc"),
                                              fields("abc", std::nullopt),
                                              fields(std::nullopt, "abc"),
                                              {"model-al", "ayout-b", {}, {}},
                                              {"model-a", "layout-c", {}, {}}};
  std::set<PageHash> hashes;
  for (const NamespaceFields& each : distinct) hashes.insert(keys.namespace_hash(each));
  REQUIRE(hashes.size() == distinct.size());
}

TEST_CASE("page hashes chain from the namespace over u32le tokens, whole pages only") {
  const KeyScheme keys(Tokens{3}, RankId{0}, 1);
  const PageHash root = keys.namespace_hash(fields(std::nullopt, std::nullopt));
  const auto hashes = keys.page_hashes(root, tokens({1, 2, 3, 4, 70000, 4294967295u, 7}));
  REQUIRE(hashes.size() == 2);
  REQUIRE(hashes[0].hex() == kFirstPage);
  REQUIRE(hashes[1].hex() == kSecondPage);
  REQUIRE(keys.page_hashes(root, tokens({1, 2})).empty());
  REQUIRE(keys.page_hashes(root, tokens({1, 2, 3})).size() == 1);
}

TEST_CASE("a tail hashed from the page before it continues the chain") {
  const KeyScheme keys(Tokens{3}, RankId{0}, 1);
  const PageHash root = keys.namespace_hash(fields(std::nullopt, std::nullopt));
  const auto whole = keys.page_hashes(root, tokens({1, 2, 3, 4, 70000, 4294967295u}));
  const auto tail = keys.page_hashes(whole[0], tokens({4, 70000, 4294967295u}));
  REQUIRE(tail == std::vector{whole[1]});
  REQUIRE(keys.page_hashes(root, tokens({4, 70000, 4294967295u})) != tail);
}

TEST_CASE("a page hash names the prefix for every rank, the object key names one rank of n") {
  const KeyScheme single(Tokens{3}, RankId{0}, 1);
  const KeyScheme third(Tokens{3}, RankId{2}, 4);
  const PageHash root = single.namespace_hash(fields(std::nullopt, std::nullopt));
  const PageHash page = single.page_hashes(root, tokens({1, 2, 3})).front();
  REQUIRE(third.page_hashes(root, tokens({1, 2, 3})).front() == page);
  REQUIRE(single.object_key(page, Component::full) == std::string(kFirstPage) + "/full/0of1");
  REQUIRE(third.object_key(page, Component::swa) == std::string(kFirstPage) + "/swa/2of4");
  REQUIRE(third.object_key(page, Component::mamba) == std::string(kFirstPage) + "/mamba/2of4");
}

}  // namespace
}  // namespace lockstep
