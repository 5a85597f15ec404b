#include "core/check.h"

#include "catch.h"
#include "core/result.h"

namespace lockstep {
namespace {

void require_positive(int value) {
  CHECK("test.positive", value > 0);
}

TEST_CASE("a violated contract throws and says its name, condition and place") {
  require_positive(1);
  try {
    require_positive(0);
    FAIL("expected a ContractFailure");
  } catch (const ContractFailure& failure) {
    REQUIRE(failure.name() == "test.positive");
    const std::string what = failure.what();
    REQUIRE(what.find("value > 0") != std::string::npos);
    REQUIRE(what.find("check_test.cpp") != std::string::npos);
  }
}

TEST_CASE("a result holds a value or an error, and guards the other") {
  const Result<int> good = 7;
  REQUIRE(good.ok());
  REQUIRE(*good == 7);
  REQUIRE_THROWS_AS(good.error(), ContractFailure);

  const Result<int> bad = Error{"no such thing"};
  REQUIRE_FALSE(bad.ok());
  REQUIRE(bad.error().message == "no such thing");
  REQUIRE_THROWS_AS(*bad, ContractFailure);

  REQUIRE(Result<void>{}.ok());
  REQUIRE_FALSE(Result<void>(Error{"x"}).ok());
}

}  // namespace
}  // namespace lockstep
