#include "oracle/output_checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lockstep::oracle {

namespace {

constexpr double kMostReferenceKl = 1e-9;

// The outputs of one position out of those of several.
std::span<const std::byte> at(std::span<const std::byte> outputs, std::size_t position,
                              std::size_t size) {
  return outputs.subspan(position * size, size);
}

std::span<const float> logits(std::span<const std::byte> output) {
  return {reinterpret_cast<const float*>(output.data()), output.size() / sizeof(float)};
}

}  // namespace

OutputChecks::OutputChecks(const Scene& scene) : scene_(scene) {
  if (scene.config.model->numbers() != nullptr) reference_.emplace(*scene.config.model);
}

void OutputChecks::after(const Event& event) {
  const auto* accepted = std::get_if<ForwardAccepted>(&event.body);
  if (accepted == nullptr) return;
  for (const SegmentView& segment : accepted->segments) check_segment(event, segment);
}

void OutputChecks::check_segment(const Event& event, const SegmentView& segment) {
  const RequestRecord* request = scene_.requests.find(segment.request);
  const Tokens end = segment.start + Tokens{static_cast<std::int64_t>(segment.tokens.size())};
  if (request == nullptr || segment.tokens.empty() || request->length() < end) return;
  scene_.advance_replica(*request, end);
  const std::span<const std::byte> expected =
      scene_.replica.outputs(segment.request, segment.start, end);
  if (segment.outputs.size() != expected.size()) {
    scene_.findings.report("D2", event.rank, segment.request,
                           std::to_string(expected.size()) + " bytes of outputs",
                           std::to_string(segment.outputs.size()) + " bytes");
    return;
  }
  if (std::memcmp(segment.outputs.data(), expected.data(), expected.size()) != 0) {
    report_difference(event, segment, expected);
  }
  check_drafts(event, segment, expected);
  if (event.rank != RankId{0}) return;
  scene_.verdict.requests[segment.request].logprobs_compared += segment.tokens.size();
  scene_.verdict.tally.logprobs_compared += segment.tokens.size();
  if (scene_.config.model->has_logits()) compare_logits(event, segment, *request, expected);
}

void OutputChecks::check_drafts(const Event& event, const SegmentView& segment,
                                std::span<const std::byte> expected) {
  const std::size_t size = scene_.config.model->output_bytes().index();
  const std::size_t count = segment.tokens.size();
  for (std::size_t i = count - std::min(segment.drafts.index(), count - 1); i < count; ++i) {
    const TokenId right = scene_.config.model->next_token(at(expected, i - 1, size));
    if (segment.tokens[i] == right) continue;
    const Tokens position = segment.start + Tokens{static_cast<std::int64_t>(i)};
    scene_.findings.report(
        "D2", event.rank, segment.request,
        "the guess that the from-scratch run generates, token id " + std::to_string(right.value()),
        "accepted token id " + std::to_string(segment.tokens[i].value()), {.token = position});
  }
}

void OutputChecks::report_difference(const Event& event, const SegmentView& segment,
                                     std::span<const std::byte> expected) {
  const std::size_t size = scene_.config.model->output_bytes().index();
  std::optional<std::size_t> first;
  std::uint64_t differing = 0;
  for (std::size_t i = 0; i < segment.tokens.size(); ++i) {
    if (std::ranges::equal(at(expected, i, size), at(segment.outputs, i, size))) continue;
    if (!first) first = i;
    ++differing;
  }
  // A numeric model's single logits are counted by its tally.
  if (!scene_.config.model->has_logits() && event.rank == RankId{0}) {
    scene_.verdict.requests[segment.request].differing_logprobs += differing;
  }
  const Tokens position = segment.start + Tokens{static_cast<std::int64_t>(*first)};
  scene_.findings.report(
      "D2", event.rank, segment.request,
      "outputs of the from-scratch run, digest " + hex(row_digest(at(expected, *first, size))),
      "token " + std::to_string(position.value()) + " has digest " +
          hex(row_digest(at(segment.outputs, *first, size))) + ", " + std::to_string(differing) +
          " of " + std::to_string(segment.tokens.size()) + " positions differ",
      {.token = position});
}

void OutputChecks::compare_logits(const Event& event, const SegmentView& segment,
                                  const RequestRecord& request,
                                  std::span<const std::byte> expected) {
  const std::size_t size = scene_.config.model->output_bytes().index();
  LogprobTally& tally = tallies_[segment.request];
  for (std::size_t i = 0; i < segment.tokens.size(); ++i) {
    const Tokens position = segment.start + Tokens{static_cast<std::int64_t>(i)};
    const std::span<const std::byte> output = at(segment.outputs, i, size);
    const bool is_sampled = position + Tokens{1} >= request.prompt;
    const auto next =
        is_sampled ? std::optional(scene_.config.model->next_token(output)) : std::nullopt;
    tally.add_replica(logits(at(expected, i, size)), logits(output), next);
    if (!reference_) continue;
    const double kl = tally.add_reference(
        reference_->logits(request.extra_key, request.tokens, position), logits(output));
    if (std::isfinite(kl) && kl <= kMostReferenceKl) continue;
    scene_.findings.report(
        "D3", event.rank, segment.request, "KL to the fp64 reference of at most 1e-9",
        std::to_string(kl * 1e9) + "e-9 at token " + std::to_string(position.value()),
        {.token = position});
  }
  tally.write_to(scene_.verdict.requests[segment.request]);
}

}  // namespace lockstep::oracle
