// An event sink for tests of one class: keeps a line of text per pool or store event.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/events.h"

namespace lockstep::testing {

class EventRecorder : public EventSink {
 public:
  void emit(RankId rank, RequestId request, EventBody body) override {
    std::string line = std::to_string(rank.value()) + " ";
    if (request != kNoRequest) line += "r" + std::to_string(request.value()) + " ";
    lines_.push_back(line + std::visit([](const auto& event) { return describe(event); }, body));
  }
  // The lines so far, which are forgotten.
  std::vector<std::string> take() { return std::exchange(lines_, {}); }

 private:
  static std::string list(std::span<const Row> rows) {
    std::string text;
    for (Row row : rows) text += " " + std::to_string(row.value());
    return text;
  }
  static std::string describe(const RowsAllocated& event) {
    return "allocated " + std::string(name(event.component)) + " for " +
           std::string(name(event.purpose)) + ":" + list(event.rows);
  }
  static std::string describe(const RowsFreed& event) {
    return "freed " + std::string(name(event.component)) + ":" + list(event.rows);
  }
  static std::string describe(const StorePut& event) {
    return "put " + std::string(event.key) + (event.stored ? " stored" : "") +
           (event.accepted ? " accepted" : "");
  }
  static std::string describe(const StoreRemoved& event) {
    return "removed " + std::string(event.key);
  }
  static std::string describe(const StoreCleared&) { return "cleared"; }
  static std::string describe(const RowsWithdrawn& event) {
    return "withdrew " + std::string(name(event.component)) + ":" + list(event.rows);
  }
  static std::string describe(const FalseAnswer& event) {
    return std::string(event.present ? "claimed " : "denied ") + std::string(event.key);
  }
  template <class Other>
  static std::string describe(const Other&) {
    return "other";
  }

  std::vector<std::string> lines_;
};

}  // namespace lockstep::testing
