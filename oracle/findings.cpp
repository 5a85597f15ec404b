#include "oracle/findings.h"

namespace lockstep::oracle {

namespace {
constexpr std::size_t kMostViolations = 100;
}

void Findings::move_to(const Event& event) {
  if (event.step != step_) reported_in_step_.clear();
  step_ = event.step;
  time_ = event.time;
}

void Findings::report(std::string_view invariant, RankId rank, RequestId request,
                      std::string expected, std::string actual, Where where) {
  if (!reported_in_step_.emplace(std::string(invariant), rank, request, where.row).second) return;
  add({std::string(invariant), step_, time_, rank, request, std::move(expected), std::move(actual),
       where.layer, where.row, where.token});
}

void Findings::add(Violation violation) {
  if (!full()) verdict_.violations.push_back(std::move(violation));
}

bool Findings::full() const {
  return verdict_.violations.size() >= kMostViolations;
}

std::string text(Tokens tokens) {
  return std::to_string(tokens.value()) + " tokens";
}

std::string text(Component component, Row row) {
  const std::string pool(name(component));
  return row == kTrapRow ? pool + " trap row" : pool + " row " + std::to_string(row.value());
}

std::string hex(std::uint64_t digest) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text.push_back(digits[(digest >> shift) & 15u]);
  return text;
}

std::string text(NodeId node) {
  return "node " + std::to_string(node.value());
}

}  // namespace lockstep::oracle
