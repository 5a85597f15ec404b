#include "oracle/request_book.h"

namespace lockstep::oracle {

RequestBook::RequestBook(ContentTable& contents, Geometry geometry, std::string model_fingerprint,
                         std::string layout_fingerprint)
    : contents_(contents) {
  reconfigure(geometry, std::move(model_fingerprint), std::move(layout_fingerprint));
}

void RequestBook::reconfigure(Geometry geometry, std::string model_fingerprint,
                              std::string layout_fingerprint) {
  geometry_ = geometry;
  model_fingerprint_ = std::move(model_fingerprint);
  layout_fingerprint_ = std::move(layout_fingerprint);
  running_.clear();
}

void RequestBook::apply(const Event& event) {
  if (const auto* submitted = std::get_if<RequestSubmitted>(&event.body))
    return submit(event, *submitted);
  if (const auto* accepted = std::get_if<ForwardAccepted>(&event.body)) {
    for (const SegmentView& segment : accepted->segments) {
      const auto found = records_.find(segment.request);
      if (found == records_.end()) continue;
      found->second.fed = segment.start + Tokens{static_cast<std::int64_t>(segment.tokens.size())};
    }
    return;
  }
  const auto found = records_.find(event.request);
  if (found == records_.end()) return;
  RequestRecord& record = found->second;
  if (const auto* token = std::get_if<TokenAccepted>(&event.body)) {
    record.tokens.push_back(token->token);
    extend_chain(record);
  } else if (const auto* committed = std::get_if<Committed>(&event.body)) {
    record.fed = committed->boundary;
    set_phase(record, RequestPhase::running);
  } else if (std::holds_alternative<RequestRetracted>(event.body) ||
             std::holds_alternative<RequestRestarted>(event.body)) {
    record.fed = Tokens{0};
    set_phase(record, RequestPhase::waiting);
  } else if (std::holds_alternative<RequestFinished>(event.body)) {
    set_phase(record, RequestPhase::finished);
  } else if (std::holds_alternative<RequestCancelled>(event.body)) {
    set_phase(record, RequestPhase::cancelled);
  } else if (std::holds_alternative<RequestRefused>(event.body)) {
    set_phase(record, RequestPhase::refused);
  }
}

void RequestBook::submit(const Event& event, const RequestSubmitted& submitted) {
  RequestRecord& record = records_[event.request];
  const bool first_time = !submitted.resumed || record.root == kNoContent;
  record.id = event.request;
  record.extra_key = submitted.extra_key;
  record.tokens.assign(submitted.prompt.begin(), submitted.prompt.end());
  if (first_time) {
    record.prompt = record.length();
    record.decode = submitted.decode;
  }
  record.tokens.reserve((record.prompt + record.decode).index());
  record.root = contents_.root(
      {model_fingerprint_, layout_fingerprint_, submitted.extra_key, submitted.cache_salt});
  record.chain.clear();
  record.fed = Tokens{0};
  set_phase(record, RequestPhase::waiting);
  extend_chain(record);
}

void RequestBook::set_phase(RequestRecord& record, RequestPhase phase) {
  record.phase = phase;
  if (phase == RequestPhase::running)
    running_.insert(record.id);
  else
    running_.erase(record.id);
}

void RequestBook::extend_chain(RequestRecord& record) {
  const std::size_t page = geometry_.page.index();
  while ((record.chain.size() + 1) * page <= record.tokens.size()) {
    const ContentId previous = record.chain.empty() ? record.root : record.chain.back();
    const auto tokens = std::span(record.tokens).subspan(record.chain.size() * page, page);
    record.chain.push_back(contents_.page_after(previous, tokens));
  }
}

void RequestBook::retire(RequestId request) {
  const auto found = records_.find(request);
  if (found == records_.end() || !has_ended(found->second.phase)) return;
  RequestRecord& record = found->second;
  std::vector<TokenId>().swap(record.tokens);
  std::vector<ContentId>().swap(record.chain);
}

const RequestRecord* RequestBook::find(RequestId request) const {
  const auto found = records_.find(request);
  return found == records_.end() ? nullptr : &found->second;
}

bool RequestBook::others_run(RequestId request) const {
  return running_.size() > (running_.contains(request) ? 1u : 0u);
}

ContentId RequestBook::content_at(const RequestRecord& request, Tokens boundary) const {
  const Pages pages = geometry_.pages(boundary);
  if (pages == Pages{0}) return request.root;
  return pages.index() <= request.chain.size() ? request.chain[pages.index() - 1] : kNoContent;
}

}  // namespace lockstep::oracle
