// Guesses what a request generates next as a scenario says it: so many tokens, of which so many are
// right. What is right comes from the model itself, run from scratch on private memory.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "oracle/replica.h"
#include "sim/scenario.h"

namespace lockstep::sim {

class ScriptedDrafter final : public engine::Drafter {
 public:
  // The model outlives the drafter. REQUIRES: `script` is not empty.
  ScriptedDrafter(std::vector<SpeculationStep> script, const model::Model& model);

  std::vector<TokenId> propose(const engine::Request& request) override;

 private:
  struct Book {
    std::size_t decodes = 0;
    std::unique_ptr<oracle::Replica> replica;
  };

  // What the model generates behind `tokens`.
  TokenId next(Book& book, const engine::Request& request, std::span<const TokenId> tokens) const;

  std::vector<SpeculationStep> script_;
  const model::Model& model_;
  std::map<RequestId, Book> books_;
};

}  // namespace lockstep::sim
