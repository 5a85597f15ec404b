// The oracle: observes a run and says what was wrong in it (semantics 9). It sees the system under
// test only through core/events.h and core/inspect.h.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/cache_config.h"
#include "core/events.h"
#include "core/inspect.h"
#include "model/model.h"
#include "oracle/verdict.h"

namespace lockstep::oracle {

struct JudgeConfig {
  Geometry geometry;  // page and track interval filled in
  CacheConfig cache;
  const model::Model* model = nullptr;  // outlives the judge
  // Where ranks share the model's heads, each rank's part; outlive the judge or the next
  // reconfigure().
  std::vector<const model::Model*> shards;
  std::string layout_fingerprint;       // as the linker's namespaces name it
  std::vector<const Inspector*> ranks;  // one per rank; outlive the judge or the next reconfigure()
  bool stop_at_first = false;
};

class Judge : public Observer {
 public:
  explicit Judge(JudgeConfig config);
  ~Judge() override;

  void on_event(const Event& event) override;
  // The engine was restarted: new ranks, perhaps another page size or model. What the store holds
  // stays known.
  void reconfigure(JudgeConfig config);
  // Full check of conservation, tree, store and reuse. `quiescent`: nothing runs, loads or is being
  // offloaded, so the strict rules hold too (C5, D1 of every row of the tree).
  void audit(bool quiescent);
  // At the end of a run: requests that neither completed nor were cancelled or refused (L1, L2).
  void end_of_run();
  // Adds a violation that the harness itself found (CHECK:<name>, U1).
  void report(Violation violation);
  // True once the run need not go on (100 violations, or the first with stop_at_first).
  bool full() const;
  // Valid until the next call.
  const Verdict& verdict();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::oracle
