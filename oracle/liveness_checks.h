// Liveness: L1 and L2 (semantics 9).
//
// Verified: every token is the one that the from-scratch run picks after the same tokens (L2,
// reported once per request, since everything after a wrong token is another run); a finished
// request has as many tokens as it asked for (L2); at the end of the run every request has ended
// (L1), and every one that was not cancelled or refused has completed (L2).
//
// Not verified: the bound on the number of steps itself. The run's owner stops after so many steps
// without progress and then asks for the end of the run.
#pragma once

#include <set>

#include "oracle/checker.h"

namespace lockstep::oracle {

class LivenessChecks : public Checker {
 public:
  explicit LivenessChecks(const Scene& scene) : scene_(scene) {}
  void before(const Event& event) override;
  void after(const Event& event) override;
  void end_of_run() override;

 private:
  void check_token(const Event& event, const TokenAccepted& accepted);
  void report_once(const Event& event, std::string expected, std::string actual, Where where);

  const Scene& scene_;
  std::set<RequestId> diverged_;
};

}  // namespace lockstep::oracle
