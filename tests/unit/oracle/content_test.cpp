// Names of content against the rule spelled out by hand (SHA-256 over bytes written down here).
#include "oracle/content.h"
#include "catch.h"
#include "oracle/store_ledger.h"

namespace lockstep::oracle {

namespace {

std::vector<TokenId> two_pages() {
  return {TokenId{1}, TokenId{0x01020304}, TokenId{7}, TokenId{8}};
}

PageHash sha256(std::string_view bytes) {
  return Sha256().update(std::as_bytes(std::span(bytes))).finish();
}

}  // namespace

TEST_CASE("a namespace hash is the SHA-256 of its fields, each present and with its length") {
  ContentTable table;
  using namespace std::string_view_literals;
  const PageHash expected = sha256(
      "\1\x0a\0\0\0lockstep-1"
      "\1\1\0\0\0m"
      "\1\2\0\0\0ly"
      "\0"
      "\1\0\0\0\0"sv);
  const ContentId root = table.root({"m", "ly", std::nullopt, ""});
  REQUIRE(table.hash(root) == expected);
  REQUIRE(table.pages(root) == Pages{0});
}

TEST_CASE("missing and empty fields differ, and fields do not run into each other") {
  ContentTable table;
  REQUIRE(table.root({"m", "l", std::nullopt, std::nullopt}) !=
          table.root({"m", "l", "", std::nullopt}));
  REQUIRE(table.root({"m", "l", "a", std::nullopt}) != table.root({"m", "l", std::nullopt, "a"}));
  REQUIRE(table.root({"m", "l", "ab", "c"}) != table.root({"m", "l", "a", "bc"}));
  REQUIRE(table.root({"m", "l", "a", "b"}) == table.root({"m", "l", "a", "b"}));
}

TEST_CASE("a page hash is the SHA-256 of the hash before and the tokens as little-endian words") {
  ContentTable table;
  const ContentId root = table.root({"m", "l", std::nullopt, std::nullopt});
  const std::vector<TokenId> tokens = two_pages();
  const ContentId first = table.page_after(root, std::span(tokens).first(2));
  const ContentId second = table.page_after(first, std::span(tokens).last(2));

  std::string bytes(reinterpret_cast<const char*>(table.hash(root).bytes.data()), 32);
  bytes += std::string("\1\0\0\0\4\3\2\1", 8);
  REQUIRE(table.hash(first) == sha256(bytes));
  REQUIRE(table.parent(second) == first);
  REQUIRE(table.pages(second) == Pages{2});
  REQUIRE(table.prefix(second, Pages{1}) == first);
  REQUIRE(table.prefix(second, Pages{0}) == root);
  REQUIRE(table.find(table.hash(second)) == second);
  REQUIRE(!table.find(PageHash{}));
  REQUIRE(table.page_after(root, std::span(tokens).first(2)) == first);
}

TEST_CASE("object keys are read, and anything else is not one") {
  const PageHash hash = sha256("x");
  const auto name = parse_object_key(hash.hex() + "/swa/1of2");
  REQUIRE(name);
  REQUIRE(name->hash == hash);
  REQUIRE(name->component == Component::swa);
  REQUIRE(name->rank == RankId{1});
  REQUIRE(name->ranks == 2);
  for (const std::string& bad :
       {std::string(), hash.hex(), hash.hex() + "/swa", hash.hex() + "/kv/0of1",
        hash.hex() + "/swa/0of", hash.hex() + "/swa/of1", hash.hex().substr(1) + "/swa/0of1",
        "g" + hash.hex().substr(1) + "/swa/0of1"}) {
    INFO(bad);
    REQUIRE(!parse_object_key(bad));
  }
}

}  // namespace lockstep::oracle
