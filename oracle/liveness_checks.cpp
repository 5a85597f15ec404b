#include "oracle/liveness_checks.h"

namespace lockstep::oracle {

void LivenessChecks::before(const Event& event) {
  if (const auto* accepted = std::get_if<TokenAccepted>(&event.body)) check_token(event, *accepted);
}

void LivenessChecks::check_token(const Event& event, const TokenAccepted& accepted) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr || request->tokens.empty()) return;
  const Tokens position = request->length();
  if (accepted.position != position) {
    return report_once(event, "a token at position " + std::to_string(position.value()),
                       "at position " + std::to_string(accepted.position.value()),
                       {.token = accepted.position});
  }
  scene_.advance_replica(*request, position);
  const auto output = scene_.replica.outputs(request->id, position - Tokens{1}, position);
  const TokenId expected = scene_.config.model->next_token(output);
  if (accepted.token == expected) return;
  report_once(event, "token " + std::to_string(expected.value()) + " as in the from-scratch run",
              "token " + std::to_string(accepted.token.value()), {.token = position});
}

void LivenessChecks::report_once(const Event& event, std::string expected, std::string actual,
                                 Where where) {
  if (!diverged_.insert(event.request).second) return;
  scene_.findings.report("L2", event.rank, event.request, std::move(expected), std::move(actual),
                         where);
}

void LivenessChecks::after(const Event& event) {
  if (!std::holds_alternative<RequestFinished>(event.body)) return;
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr || request->generated() == request->decode) return;
  scene_.findings.report("L2", event.rank, event.request, text(request->decode) + " generated",
                         text(request->generated()) + " generated");
}

void LivenessChecks::end_of_run() {
  for (const auto& [id, request] : scene_.requests.all()) {
    if (has_ended(request.phase)) continue;
    const std::string state = request.phase == RequestPhase::waiting ? "still waits" : "still runs";
    scene_.findings.report("L1", RankId{0}, id, "the request ends once faults have stopped",
                           "it " + state);
    scene_.findings.report("L2", RankId{0}, id, text(request.decode) + " generated",
                           text(request.generated()) + " generated, then it stalled");
  }
}

}  // namespace lockstep::oracle
