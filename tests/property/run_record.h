// What a run did, from its events alone: outputs to compare with those of another run, and what it
// took and did not give back.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/events.h"
#include "sim/result.h"
#include "sim/scenario.h"

namespace lockstep::testing {

class RunRecord : public Observer {
 public:
  using Bytes = std::vector<std::byte>;
  struct Request {
    std::vector<TokenId> prompt;
    Tokens decode;
    std::optional<std::string> extra_key;
    std::optional<std::string> cache_salt;
    bool finished = false;
    std::vector<TokenId> generated;
    std::vector<std::pair<Tokens, Bytes>> outputs;  // every one that was taken, by position
  };

  void on_event(const Event& event) override;

  std::uint64_t events() const { return events_; }
  const std::map<RequestId, Request>& requests() const { return requests_; }
  // What is not given back: rows by component, nodes, locks, transfers; empty if nothing is left.
  std::string left() const;
  // The same, of nodes and locks only, at each flush.
  const std::string& left_by_flushes() const { return left_by_flushes_; }
  std::uint64_t flushes() const { return flushes_; }

 private:
  struct Held {
    std::array<std::set<Row>, 3> rows;
    std::set<NodeId> nodes;
    std::set<LockId> locks;
    std::set<LoadId> loads;
    std::set<OffloadId> offloads;
  };
  void note_request(const Event& event);
  void note_held(const Event& event, Held& held);
  static std::string tree_left(const Held& held);

  std::uint64_t events_ = 0;
  std::uint64_t flushes_ = 0;
  std::map<RequestId, Request> requests_;
  std::map<RankId, Held> held_;
  std::string left_by_flushes_;
};

// Nothing if the scenario cannot be run, as some that a shrinker tries.
std::optional<sim::RunResult> run(const sim::Scenario& scenario, RunRecord& record);

// `request` of a run of `scenario`, in an empty world of its own with room for everything.
sim::Scenario alone(const sim::Scenario& scenario, const RunRecord::Request& request);

// Why the outputs and tokens of `request` are not those that it has alone; empty if they are.
std::string difference_from_alone(const sim::Scenario& scenario, const RunRecord::Request& request);

}  // namespace lockstep::testing
