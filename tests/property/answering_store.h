// A store that says whether it has an object, and never moves one: for phases that only ask.
#pragma once

#include <set>

#include "store/store.h"

namespace lockstep::testing {

class AnsweringStore : public Store {
 public:
  explicit AnsweringStore(std::set<ObjectKey> keys = {}) : keys_(std::move(keys)) {}
  std::vector<bool> exists(std::span<const ObjectKey> keys) override {
    std::vector<bool> answers;
    for (const ObjectKey& key : keys) answers.push_back(keys_.contains(key));
    return answers;
  }
  StoreTicket get(std::vector<GetItem>) override { return 0; }
  StoreTicket put(std::vector<PutItem>) override { return 0; }
  std::optional<std::vector<StoreResult>> poll(StoreTicket) override { return std::nullopt; }
  void remove(std::span<const ObjectKey>) override {}
  void on_progress(std::function<void()>) override {}

 private:
  std::set<ObjectKey> keys_;
};

}  // namespace lockstep::testing
