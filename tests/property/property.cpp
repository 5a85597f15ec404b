#include "property.h"

#include <cstdlib>
#include <sstream>

#include <rapidcheck.h>

#include "catch.h"

namespace lockstep::testing {

namespace {

// RapidCheck's own one announces a seed that is not used here.
class SilentListener : public rc::detail::TestListener {
 public:
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
};

}  // namespace

void require_property(const std::string& name, int cases, const std::function<void()>& property) {
  rc::detail::TestParams params;
  params.seed = 1;
  params.maxSuccess = cases;
  if (std::getenv("RC_PARAMS") != nullptr) params = rc::detail::configuration().testParams;
  rc::detail::TestMetadata metadata;
  metadata.id = name;
  metadata.description = name;
  SilentListener listener;
  const rc::detail::TestResult result =
      rc::detail::checkProperty(rc::detail::toProperty(property), metadata, params, listener, {});
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  INFO(name << ", RC_PARAMS=\"seed=" << params.seed << " max_success=" << params.maxSuccess
            << "\"\n"
            << message.str());
  REQUIRE(result.is<rc::detail::SuccessResult>());
}

}  // namespace lockstep::testing
