#include "run_record.h"

#include <algorithm>

#include "sim/scenario_run.h"

namespace lockstep::testing {

void RunRecord::on_event(const Event& event) {
  ++events_;
  note_request(event);
  if (std::holds_alternative<EngineRestarted>(event.body)) {
    held_.clear();  // what an engine gives back while it ends is no event
  } else {
    note_held(event, held_[event.rank]);
  }
}

void RunRecord::note_request(const Event& event) {
  if (const auto* submitted = std::get_if<RequestSubmitted>(&event.body)) {
    if (submitted->resumed) return;
    Request& request = requests_[event.request];
    request.prompt.assign(submitted->prompt.begin(), submitted->prompt.end());
    request.decode = submitted->decode;
    if (submitted->extra_key) request.extra_key = std::string(*submitted->extra_key);
    if (submitted->cache_salt) request.cache_salt = std::string(*submitted->cache_salt);
  } else if (const auto* accepted = std::get_if<TokenAccepted>(&event.body)) {
    requests_[event.request].generated.push_back(accepted->token);
  } else if (std::holds_alternative<RequestFinished>(event.body)) {
    requests_[event.request].finished = true;
  } else if (const auto* forward = std::get_if<ForwardAccepted>(&event.body)) {
    for (const SegmentView& segment : forward->segments) {
      if (segment.tokens.empty()) continue;
      const std::size_t size = segment.outputs.size() / segment.tokens.size();
      for (std::size_t i = 0; i < segment.tokens.size(); ++i) {
        const std::span<const std::byte> output = segment.outputs.subspan(i * size, size);
        requests_[segment.request].outputs.emplace_back(
            segment.start + Tokens{static_cast<std::int64_t>(i)},
            Bytes(output.begin(), output.end()));
      }
    }
  }
}

void RunRecord::note_held(const Event& event, Held& held) {
  if (const auto* allocated = std::get_if<RowsAllocated>(&event.body)) {
    held.rows[index(allocated->component)].insert(allocated->rows.begin(), allocated->rows.end());
  } else if (const auto* freed = std::get_if<RowsFreed>(&event.body)) {
    for (Row row : freed->rows) held.rows[index(freed->component)].erase(row);
  } else if (const auto* created = std::get_if<NodeCreated>(&event.body)) {
    held.nodes.insert(created->node);
  } else if (const auto* split = std::get_if<NodeSplit>(&event.body)) {
    held.nodes.insert(split->upper);
  } else if (const auto* removed = std::get_if<NodeRemoved>(&event.body)) {
    held.nodes.erase(removed->node);
  } else if (const auto* locked = std::get_if<LockTaken>(&event.body)) {
    held.locks.insert(locked->lock);
  } else if (const auto* unlocked = std::get_if<LockReleased>(&event.body)) {
    held.locks.erase(unlocked->lock);
  } else if (const auto* loading = std::get_if<LoadQueued>(&event.body)) {
    held.loads.insert(loading->load);
  } else if (const auto* loaded = std::get_if<LoadFinished>(&event.body)) {
    held.loads.erase(loaded->load);
  } else if (const auto* putting = std::get_if<OffloadQueued>(&event.body)) {
    held.offloads.insert(putting->offload);
  } else if (const auto* put = std::get_if<OffloadFinished>(&event.body)) {
    held.offloads.erase(put->offload);
  } else if (std::holds_alternative<CacheFlushed>(event.body)) {
    ++flushes_;
    left_by_flushes_ += tree_left(held);
  }
}

std::string RunRecord::tree_left(const Held& held) {
  std::string text;
  if (!held.nodes.empty()) text += std::to_string(held.nodes.size()) + " nodes ";
  if (!held.locks.empty()) text += std::to_string(held.locks.size()) + " locks ";
  return text;
}

std::string RunRecord::left() const {
  std::string text;
  for (const auto& [rank, held] : held_) {
    for (Component component : kComponents) {
      const std::size_t rows = held.rows[index(component)].size();
      if (rows > 0) text += std::to_string(rows) + " " + std::string(name(component)) + " rows ";
    }
    text += tree_left(held);
    if (!held.loads.empty()) text += std::to_string(held.loads.size()) + " loads ";
    if (!held.offloads.empty()) text += std::to_string(held.offloads.size()) + " offloads ";
  }
  return text;
}

std::optional<sim::RunResult> run(const sim::Scenario& scenario, RunRecord& record) {
  sim::RunOptions options;
  options.observer = &record;
  Result<sim::RunResult> result = sim::run_scenario(scenario, options);
  if (!result) return std::nullopt;
  return std::move(result).value();
}

sim::Scenario alone(const sim::Scenario& scenario, const RunRecord::Request& request) {
  sim::Scenario own;
  own.name = scenario.name + "-alone";
  own.seed = scenario.seed;  // of the weights
  own.model = scenario.model;
  own.cache.page = scenario.cache.page;
  own.cache.track_interval = scenario.cache.track_interval;
  own.cache.full_pages = own.cache.swa_pages = own.cache.mamba_slots = Rows{512};
  own.prompts["p"].tokens = request.prompt;
  sim::SubmitStep submit;
  submit.request = "r";
  submit.prompt = "p";
  submit.decode = request.decode;
  submit.extra_key = request.extra_key;
  submit.cache_salt = request.cache_salt;
  sim::RunStep to_the_end;
  to_the_end.idle = true;
  own.steps = {submit, to_the_end};
  return own;
}

std::string difference_from_alone(const sim::Scenario& scenario,
                                  const RunRecord::Request& request) {
  RunRecord record;
  if (!run(alone(scenario, request), record)) return "alone it is refused";
  const RunRecord::Request& expected = record.requests().begin()->second;
  if (!expected.finished) return "alone it does not finish";
  // A request that was cut short generated the first part.
  if (request.generated.size() > expected.generated.size() ||
      !std::equal(request.generated.begin(), request.generated.end(), expected.generated.begin())) {
    return "other tokens";
  }
  if (request.finished && request.generated.size() != expected.generated.size()) {
    return "too few tokens";
  }
  const std::map<Tokens, RunRecord::Bytes> outputs(expected.outputs.begin(),
                                                   expected.outputs.end());
  for (const auto& [position, bytes] : request.outputs) {
    const auto other = outputs.find(position);
    // One forward ahead may feed the last token, which nobody feeds alone.
    if (other != outputs.end() && other->second != bytes) {
      return "another output at position " + std::to_string(position.value());
    }
  }
  return "";
}

}  // namespace lockstep::testing
