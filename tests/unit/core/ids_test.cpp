#include "core/ids.h"

#include <concepts>
#include <set>

#include "catch.h"

namespace lockstep {
namespace {

// What must not compile, stated as constraints that must not hold.
template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
template <class A, class B>
concept Subtractable = requires(A a, B b) { a - b; };
template <class A, class B>
concept Comparable = requires(A a, B b) { a == b; };
template <class A, class B>
concept Ordered = requires(A a, B b) { a < b; };
template <class A, class B>
concept Multipliable = requires(A a, B b) { a* b; };
template <class A>
concept Incrementable = requires(A a) { ++a; };

static_assert(!std::convertible_to<int, Tokens>);
static_assert(!std::convertible_to<std::int64_t, Pages>);
static_assert(!std::convertible_to<Tokens, std::int64_t>);
static_assert(!std::convertible_to<Tokens, bool>);
static_assert(!std::constructible_from<Pages, Tokens>);
static_assert(!std::constructible_from<Bytes, Rows>);
static_assert(!std::assignable_from<Pages&, Tokens>);
static_assert(!Addable<Tokens, Pages>);
static_assert(!Addable<Tokens, int>);
static_assert(!Subtractable<Nanoseconds, Bytes>);
static_assert(!Comparable<Tokens, Pages>);
static_assert(!Comparable<Tokens, int>);
static_assert(!Ordered<Rows, Pages>);
static_assert(!Multipliable<Tokens, Tokens>);
static_assert(Addable<Tokens, Tokens>);
static_assert(Multipliable<Tokens, std::int64_t>);

static_assert(!std::convertible_to<std::uint32_t, Row>);
static_assert(!std::convertible_to<Row, std::uint32_t>);
static_assert(!std::constructible_from<Row, TokenId>);
static_assert(!std::constructible_from<NodeId, LoadId>);
static_assert(!Comparable<Row, LayerId>);
static_assert(!Comparable<Row, Rows>);
static_assert(!Addable<Row, Row>);
static_assert(!Incrementable<Row>);
static_assert(Comparable<Row, Row>);
static_assert(Ordered<NodeId, NodeId>);

TEST_CASE("counts of one unit add, subtract, scale and divide") {
  Tokens length{10};
  length += Tokens{5};
  REQUIRE(length == Tokens{15});
  length -= Tokens{1};
  REQUIRE(length == Tokens{14});
  REQUIRE(++length == Tokens{15});
  REQUIRE(length + Tokens{1} == Tokens{16});
  REQUIRE(length - Tokens{16} == Tokens{-1});
  REQUIRE(length * 3 == Tokens{45});
  REQUIRE(length / Tokens{4} == 3);
  REQUIRE(length % Tokens{4} == Tokens{3});
  REQUIRE(Tokens{} == Tokens{0});
}

TEST_CASE("ids compare and key ordered containers") {
  const std::set<Row> rows{Row{3}, Row{1}, Row{3}};
  REQUIRE(rows.size() == 2);
  REQUIRE(*rows.begin() == Row{1});
  REQUIRE(kTrapRow == Row{0});
  REQUIRE(kNoRequest == RequestId{4294967295u});
}

}  // namespace
}  // namespace lockstep
