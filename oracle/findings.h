// Where the checkers put what they find: names it, dates it, and keeps it short.
//
// At most 100 violations are kept. The same invariant on the same rank, request and row is reported
// once per engine step.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "core/component.h"
#include "core/events.h"
#include "oracle/verdict.h"

namespace lockstep::oracle {

struct Where {
  std::optional<LayerId> layer = {};
  std::optional<Row> row = {};
  std::optional<Tokens> token = {};
};

class Findings {
 public:
  explicit Findings(Verdict& verdict) : verdict_(verdict) {}

  // Later reports carry this event's step and time.
  void move_to(const Event& event);
  void report(std::string_view invariant, RankId rank, RequestId request, std::string expected,
              std::string actual, Where where = {});
  // As found elsewhere, complete with its step and time.
  void add(Violation violation);
  bool full() const;

 private:
  using Key = std::tuple<std::string, RankId, RequestId, std::optional<Row>>;

  Verdict& verdict_;
  StepId step_;
  Nanoseconds time_;
  std::set<Key> reported_in_step_;
};

// How values read in a report.
std::string text(Tokens tokens);                 // "512 tokens"
std::string text(Component component, Row row);  // "mamba row 3"; the trap row says so
std::string hex(std::uint64_t digest);           // 16 digits
std::string text(NodeId node);                   // "node 7"

}  // namespace lockstep::oracle
