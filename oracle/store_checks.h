// The store: S1 to S3 (semantics 9).
//
// Verified: a stored flag is set only for contents that every rank's store has accepted, complete,
// at some time (S1); a node whose FULL is flagged has flagged ancestors, when it is flagged and in
// full (S2); the rows that a good load filled equal the rows that the objects were put from (S3).
//
// Not verified: that the store still has what is flagged (losing it is allowed); flags against a
// store that was restarted without its data since (what it accepted earlier still counts); an
// object whose put was not observed.
#pragma once

#include "oracle/checker.h"

namespace lockstep::oracle {

class StoreChecks : public Checker {
 public:
  explicit StoreChecks(const Scene& scene) : scene_(scene) {}
  void before(const Event& event) override;

 private:
  void check_accepted(const Event& event, const StoredFlagSet& flagged);
  void check_parent(const Event& event, const StoredFlagSet& flagged);
  void check_read_back(const Event& event, const LoadFinished& finished);

  const Scene& scene_;
};

}  // namespace lockstep::oracle
