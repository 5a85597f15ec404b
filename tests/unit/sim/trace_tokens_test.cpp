#include "sim/trace_tokens.h"

#include <set>

#include "catch.h"
#include "sim/trace_run.h"

namespace lockstep::sim {
namespace {

TraceRequest request_of(std::int64_t input, std::vector<std::uint64_t> blocks,
                        std::string scope = "") {
  TraceRequest request;
  request.input = Tokens{input};
  request.output = Tokens{10};
  request.block = Tokens{16};
  request.blocks = std::move(blocks);
  request.scope = std::move(scope);
  return request;
}

std::vector<TokenId> part(const std::vector<TokenId>& tokens, std::size_t begin, std::size_t end) {
  return {tokens.begin() + static_cast<std::ptrdiff_t>(begin),
          tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

TEST_CASE("equal ids give equal tokens, wherever they stand and whoever asks") {
  const auto first = trace_tokens(request_of(32, {7, 8}), 0, 65536);
  const auto second = trace_tokens(request_of(32, {8, 7}), 5, 65536);
  REQUIRE(first.size() == 32);
  REQUIRE(part(first, 0, 16) == part(second, 16, 32));
  REQUIRE(part(first, 16, 32) == part(second, 0, 16));
  REQUIRE(part(first, 0, 16) != part(first, 16, 32));
}

TEST_CASE("different ids and scopes give different tokens") {
  std::set<std::vector<TokenId>> pages;
  for (std::uint64_t id = 0; id < 2000; ++id) {
    pages.insert(trace_tokens(request_of(16, {id}), 0, 65536));
    pages.insert(trace_tokens(request_of(16, {id}, "a"), 0, 65536));
    pages.insert(trace_tokens(request_of(16, {id}, "b"), 0, 65536));
  }
  REQUIRE(pages.size() == 6000);
}

TEST_CASE("the last, partial block is not shared") {
  const auto first = trace_tokens(request_of(24, {7, 8}), 0, 65536);
  const auto second = trace_tokens(request_of(24, {7, 8}), 1, 65536);
  const auto whole = trace_tokens(request_of(32, {7, 8}), 0, 65536);
  REQUIRE(first.size() == 24);
  REQUIRE(part(first, 0, 16) == part(second, 0, 16));
  REQUIRE(part(first, 16, 24) != part(second, 16, 24));
  REQUIRE(part(first, 16, 24) != part(whole, 16, 24));
}

TEST_CASE("tokens lie in [1, vocab)") {
  for (TokenId token : trace_tokens(request_of(16 * 64, std::vector<std::uint64_t>(64, 3)), 0, 3)) {
    REQUIRE((token == TokenId{1} || token == TokenId{2}));
  }
}

TEST_CASE("a replay's pools follow from the trace, unless they are given") {
  TraceOptions options;
  // 40 distinct whole blocks of 16; the longest request is 20 blocks + 10 generated: 21 pages.
  std::vector<TraceRequest> requests;
  for (std::uint64_t i = 0; i < 2; ++i) {
    std::vector<std::uint64_t> ids(20);
    for (std::uint64_t k = 0; k < 20; ++k) ids[k] = i * 20 + k;
    requests.push_back(request_of(320, ids));
    requests.push_back(request_of(320, ids));
  }
  const CacheConfig sized = trace_cache(options, requests);
  REQUIRE(sized.page == Tokens{16});
  REQUIRE(sized.full_pages == Rows{21 + 4});
  REQUIRE(sized.swa_pages == Rows{25});
  REQUIRE(sized.mamba_slots == Rows{24});

  options.cache.page = Tokens{32};
  options.cache.full_pages = Rows{1000};
  options.given = {"page", "full_pages"};
  const CacheConfig given = trace_cache(options, requests);
  REQUIRE(given.page == Tokens{32});
  REQUIRE(given.full_pages == Rows{1000});
  REQUIRE(given.swa_pages == Rows{11 + 2});
}

TEST_CASE("generated tokens are cut, to one at least") {
  TraceOptions options;
  REQUIRE(trace_output(options, request_of(16, {1})) == Tokens{10});
  options.max_output = Tokens{4};
  REQUIRE(trace_output(options, request_of(16, {1})) == Tokens{4});
  options.max_output = Tokens{0};
  REQUIRE(trace_output(options, request_of(16, {1})) == Tokens{1});
}

}  // namespace lockstep::sim
