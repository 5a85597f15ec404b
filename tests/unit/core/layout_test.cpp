#include "core/layout.h"

#include "catch.h"

namespace lockstep {
namespace {

// A slot of two recurrent layers, in descending order: temporal then conv of layer 5, then of
// layer 2.
RowLayout slot() {
  return RowLayout{Component::mamba,
                   {{LayerId{5}, Part::temporal, Bytes{0}, Bytes{64}},
                    {LayerId{5}, Part::conv, Bytes{64}, Bytes{16}},
                    {LayerId{2}, Part::temporal, Bytes{80}, Bytes{64}},
                    {LayerId{2}, Part::conv, Bytes{144}, Bytes{16}}},
                   Bytes{160}};
}

TEST_CASE("the range of a layer covers all its parts") {
  REQUIRE(slot().range_of(LayerId{5}).offset == Bytes{0});
  REQUIRE(slot().range_of(LayerId{5}).size == Bytes{80});
  REQUIRE(slot().range_of(LayerId{2}).offset == Bytes{80});
  REQUIRE(slot().range_of(LayerId{2}).size == Bytes{80});
}

TEST_CASE("a layer that the pool does not hold has an empty range") {
  REQUIRE(slot().range_of(LayerId{3}).size == Bytes{0});
}

TEST_CASE("layers come in the object's order, each once") {
  REQUIRE(slot().layers() == std::vector{LayerId{5}, LayerId{2}});
  REQUIRE(RowLayout{}.layers().empty());
}

}  // namespace
}  // namespace lockstep
