#include "sim/run_observers.h"

namespace lockstep::sim {

void DigestObserver::on_event(const Event& event) {
  digest_.fold(event.body.index());
  digest_.fold(event.step.value());
  digest_.fold(static_cast<std::uint64_t>(event.time.value()));
  digest_.fold(std::uint64_t{event.rank.value()} << 32 | event.request.value());
  visit_fields(event.body, *this);
  fold_rows(event);
}

void DigestObserver::number(std::string_view, std::int64_t value) {
  digest_.fold(static_cast<std::uint64_t>(value));
}

void DigestObserver::text(std::string_view, std::string_view value) {
  digest_.fold(std::as_bytes(std::span(value)));
}

void DigestObserver::numbers(std::string_view, std::span<const std::int64_t> values) {
  digest_.fold(std::as_bytes(values));
}

void DigestObserver::bytes(std::string_view, std::span<const std::byte> value) {
  digest_.fold(value);
}

void DigestObserver::fold_rows(const Event& event) {
  // A new engine numbers its loads anew, and none of the old one's ends.
  if (std::holds_alternative<EngineRestarted>(event.body)) loading_.clear();
  if (const auto* queued = std::get_if<LoadQueued>(&event.body)) {
    std::vector<LoadedRows>& rows = loading_[{event.rank, queued->load}];
    for (const TransferView& transfer : queued->transfers) {
      rows.push_back({transfer.component, {transfer.rows.begin(), transfer.rows.end()}});
    }
  }
  if (const auto* finished = std::get_if<LoadFinished>(&event.body)) {
    for (const LoadedRows& loaded : loading_[{event.rank, finished->load}]) {
      for (Row row : loaded.rows) {
        digest_.fold(inspector_(event.rank).row_bytes(loaded.component, row));
      }
    }
    loading_.erase({event.rank, finished->load});
  }
  if (const auto* copied = std::get_if<CopyExecuted>(&event.body)) {
    digest_.fold(inspector_(event.rank).row_bytes(Component::mamba, copied->q));
  }
}

void ResultCollector::on_event(const Event& event) {
  // Decisions are the same on every rank; the first one stands for all.
  if (event.rank == RankId{0}) on_rank_zero(event);
}

void ResultCollector::on_rank_zero(const Event& event) {
  const auto figures = [&]() -> Figures& { return requests_[event.request]; };
  if (const auto* submitted = std::get_if<RequestSubmitted>(&event.body)) {
    if (!submitted->resumed) figures().submitted = event.time;
  } else if (std::holds_alternative<RequestRefused>(event.body)) {
    figures().result.outcome = "refused";
  } else if (std::holds_alternative<RequestCancelled>(event.body)) {
    figures().result.outcome = "cancelled";
  } else if (std::holds_alternative<RequestFinished>(event.body)) {
    figures().result.outcome = "completed";
  } else if (std::holds_alternative<RequestRetracted>(event.body)) {
    ++counters_["retractions"];
  } else if (std::holds_alternative<StepBegun>(event.body)) {
    ++counters_["steps"];
  } else if (const auto* matched = std::get_if<Matched>(&event.body)) {
    figures().admission = {matched->device_hit, matched->device_hit, false};
  } else if (const auto* committed = std::get_if<Committed>(&event.body)) {
    Figures& f = figures();
    f.admission.boundary = committed->boundary;
    f.admission.device_hit = committed->device_hit;
    f.committed = event.time;
  } else if (const auto* queued = std::get_if<LoadQueued>(&event.body)) {
    on_load(event, *queued);
  } else if (const auto* inserted = std::get_if<Inserted>(&event.body)) {
    if (inserted->cause == InsertCause::load) on_insert(event, *inserted);
  } else if (std::holds_alternative<LayerLanded>(event.body)) {
    Figures& f = figures();
    if (f.committed && !f.first_layer) f.first_layer = event.time;
  } else if (const auto* finished = std::get_if<LoadFinished>(&event.body)) {
    const auto owner = loads_.find(finished->load);
    if (owner != loads_.end() && !finished->good) requests_[owner->second].result.recomputed = true;
  } else if (const auto* launched = std::get_if<ForwardLaunched>(&event.body)) {
    ++counters_["forwards"];
    for (const SegmentView& segment : launched->segments) {
      Figures& f = requests_[segment.request];
      if (!f.launched) f.launched = event.time;
    }
  } else if (const auto* accepted = std::get_if<ForwardAccepted>(&event.body)) {
    on_forward(event, accepted->segments);
  } else if (std::holds_alternative<TokenAccepted>(event.body)) {
    Figures& f = figures();
    if (!f.first_token) f.first_token = event.time;
    const LastOutput& last = last_output_[event.request];
    taken_[{event.request, last.position}] = last.digest;
  }
}

void ResultCollector::on_forward(const Event&, std::span<const SegmentView> segments) {
  for (const SegmentView& segment : segments) {
    Figures& f = requests_[segment.request];
    const std::size_t size = segment.outputs.size() / segment.tokens.size();
    last_output_[segment.request] = {
        segment.start + Tokens{static_cast<std::int64_t>(segment.tokens.size())},
        xxh3(segment.outputs.last(size))};
    counters_["tokens_computed"] += static_cast<std::int64_t>(segment.tokens.size());
    if (f.admission.accepted) continue;
    f.admission.accepted = true;
    f.result.restored_tokens = f.admission.boundary;
    f.result.from_device = f.admission.device_hit;
    f.result.from_store = f.admission.boundary - f.admission.device_hit;
    counters_["tokens_restored"] += f.admission.boundary.value();
    if (f.result.from_store > Tokens{0}) ++counters_["restores"];
  }
}

void ResultCollector::on_load(const Event& event, const LoadQueued& load) {
  ++counters_["loads"];
  loads_[load.load] = event.request;
}

// What the tree did not adopt was loaded in vain, or not at all.
void ResultCollector::on_insert(const Event& event, const Inserted& inserted) {
  auto& rows = requests_[event.request].result.loaded_rows;
  rows[std::string(name(Component::full))] =
      static_cast<std::int64_t>(inserted.full_adopted_rows.size());
  rows[std::string(name(Component::swa))] =
      static_cast<std::int64_t>(inserted.swa_adopted_rows.size());
  const bool has_state = inserted.state != kTrapRow && !inserted.mamba_exist;
  rows[std::string(name(Component::mamba))] = has_state ? 1 : 0;
}

void ResultCollector::write(RunResult& result) const {
  for (const char* name : {"steps", "forwards", "loads", "restores", "retractions",
                           "tokens_computed", "tokens_restored"}) {
    const auto found = counters_.find(name);
    result.counters[name] = found == counters_.end() ? 0 : found->second;
  }
  RunDigest outputs;
  for (const auto& [where, digest] : taken_) {
    outputs.fold(where.first.value());
    outputs.fold(static_cast<std::uint64_t>(where.second.value()));
    outputs.fold(digest);
  }
  result.outputs_digest = outputs.value();
  for (const auto& [id, figures] : requests_) {
    const auto name = result.request_names.find(id);
    if (name == result.request_names.end()) continue;
    RequestResult& request = result.requests[name->second];
    request = figures.result;
    if (figures.launched) request.forward_start = *figures.launched - figures.submitted;
    if (figures.first_token) request.ttft = *figures.first_token - figures.submitted;
    if (figures.first_layer) request.load_wait = *figures.first_layer - *figures.committed;
  }
}

}  // namespace lockstep::sim
