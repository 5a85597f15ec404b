#include "sim/coverage.h"

#include <algorithm>
#include <optional>

namespace lockstep::sim {

namespace {

constexpr std::array<std::string_view, kSometimesCount> kSometimesNames{
    "commit without a hit",
    "commit of a device hit",
    "commit of a load",
    "mamba_exist at commit",
    "mamba_exist at chunk end",
    "mamba_exist at finish",
    "retract inserts a checkpoint",
    "load adopts nothing",
    "load adopts a part",
    "load fails",
    "two loads in one batch",
    "store not asked again",
    "match beyond the hit",
    "lookup finds several lengths",
    "lookup finds nothing",
    "ranks find different lengths",
    "vote below a rank's longest",
    "gave up: allocation",
    "gave up: no room for the tail",
    "gave up: no room for the hit",
    "abort of full",
    "abort of swa",
    "abort of mamba",
    "load short of full pages",
    "load short of swa pages",
    "short of a tracking slot",
    "forward short of full pages",
    "forward short of swa pages",
    "pages refused by a fault",
    "state target refused by a fault",
    "private slot refused by a fault",
    "tracking refused by a fault",
    "node split",
    "node split by a load",
    "node split while it is put",
    "full evicted for room",
    "swa evicted for room",
    "state evicted for room",
    "eviction cascades",
    "eviction asked for",
    "flush empties the tree",
    "load rolled back",
    "window released",
    "request retracted",
    "retracted request hits again",
    "cancelled while waiting",
    "cancelled while running",
    "cancelled while loading",
    "flush while a request runs",
    "restart resumes a request",
    "request refused",
    "offload fails",
    "offload of a state alone",
    "offload of window pages alone",
    "pool shrinks",
    "put refused for lack of room",
    "put of what is there",
    "object lost",
    "store restarted empty",
    "store denies what it has",
    "prefill and decode in one forward",
    "several requests in one forward",
    "two checkpoints in one forward",
    "checkpoint of a decode",
    "copy of a state",
    "slot cleared",
    "all drafts right",
    "some drafts right",
    "all drafts wrong",
    "drafts pass a checkpoint",
    "short of a slot for drafts",
    "slot for drafts refused by a fault"};

Sometimes refused_point(Purpose purpose) {
  switch (purpose) {
    case Purpose::state_target:
      return Sometimes::refused_state_target;
    case Purpose::private_slot:
      return Sometimes::refused_private_slot;
    case Purpose::tracking:
      return Sometimes::refused_tracking;
    case Purpose::draft:
      return Sometimes::refused_draft;
    default:
      return Sometimes::refused_pages;
  }
}

// That a state target or a private slot is not to be had without a fault is no point: admission
// has counted both right before, and what comes between can only free slots. None: one of those.
std::optional<Sometimes> point_of(const AllocationFailed& failed) {
  if (failed.injected) return refused_point(failed.purpose);
  const bool full = failed.component == Component::full;
  switch (failed.purpose) {
    case Purpose::load:
      return full ? Sometimes::short_full_load : Sometimes::short_swa_load;
    case Purpose::tracking:
      return Sometimes::short_tracking;
    case Purpose::draft:
      return Sometimes::short_draft;
    case Purpose::forward:
      return full ? Sometimes::short_full_forward : Sometimes::short_swa_forward;
    default:
      return std::nullopt;
  }
}

Sometimes point_of(Component evicted) {
  if (evicted == Component::full) return Sometimes::evict_full_pressure;
  return evicted == Component::swa ? Sometimes::evict_swa_pressure
                                   : Sometimes::evict_mamba_pressure;
}

}  // namespace

std::string_view name(Sometimes point) {
  return kSometimesNames[static_cast<std::size_t>(point)];
}

std::map<std::string, std::int64_t> Coverage::counts() const {
  std::map<std::string, std::int64_t> reached;
  for (std::size_t i = 0; i < kSometimesCount; ++i) {
    if (counts_[i] > 0) reached.emplace(kSometimesNames[i], counts_[i]);
  }
  return reached;
}

void Coverage::on_event(const Event& event) {
  std::visit([&](const auto& body) { on(event, body); }, event.body);
}

// ---------------------------------------------------------------- requests

void Coverage::on(const Event&, const RequestSubmitted& submitted) {
  hit(Sometimes::restart_resumes, submitted.resumed);
}

void Coverage::on(const Event&, const RequestRefused&) {
  hit(Sometimes::refused_at_submission);
}

void Coverage::on(const Event& event, const RequestRetracted&) {
  hit(Sometimes::retracted);
  retracted_.insert(event.request);
  running_.erase(event.request);
}

void Coverage::on(const Event& event, const RequestFinished&) {
  running_.erase(event.request);
}

void Coverage::on(const Event& event, const RequestCancelled&) {
  const bool ran = running_.erase(event.request) > 0;
  hit(ran ? Sometimes::cancelled_running : Sometimes::cancelled_waiting);
  hit(Sometimes::cancelled_while_loading,
      std::ranges::any_of(loads_, [&](const auto& load) { return load.second == event.request; }));
}

// The engine has retracted by then.
void Coverage::on(const Event&, const CacheFlushed&) {
  hit(Sometimes::flush_while_running, !retracted_.empty());
}

void Coverage::on(const Event&, const EngineRestarted&) {
  running_.clear();
  retracted_.clear();
  loads_.clear();
  offloads_.clear();
}

// ---------------------------------------------------------------- phases

void Coverage::on(const Event& event, const Matched& matched) {
  hit(Sometimes::match_beyond_hit, matched.full_matched > matched.device_hit);
  hit(Sometimes::load_not_queued_again, !matched.query_store);
  hit(Sometimes::resumed_with_hit,
      matched.device_hit > Tokens{0} && retracted_.contains(event.request));
}

void Coverage::on(const Event& event, const LookedUp& looked_up) {
  const auto& found = looked_up.restorable;
  hit(Sometimes::lookup_several, found.size() > 1);
  hit(Sometimes::lookup_nothing, found.empty());
  if (event.rank == RankId{0}) {
    found_.assign(found.begin(), found.end());
    longest_ = Tokens{0};
  } else {
    hit(Sometimes::lookup_ranks_differ, !std::ranges::equal(found, found_));
  }
  if (!found.empty()) longest_ = std::max(longest_, found.back());
}

void Coverage::on(const Event&, const Voted& voted) {
  hit(Sometimes::vote_below_longest, voted.boundary < longest_);
}

void Coverage::on(const Event&, const GaveUp& gave_up) {
  hit(Sometimes::gave_up_allocation, gave_up.reason == GiveUp::allocation);
  hit(Sometimes::gave_up_tail, gave_up.reason == GiveUp::no_room_tail);
  hit(Sometimes::gave_up_hit, gave_up.reason == GiveUp::no_room_hit);
}

void Coverage::on(const Event&, const AllocationFailed& failed) {
  if (const auto point = point_of(failed)) hit(*point);
}

void Coverage::on(const Event&, const LoadAborted& aborted) {
  if (aborted.rows.empty()) return;
  hit(Sometimes::abort_full, aborted.component == Component::full);
  hit(Sometimes::abort_swa, aborted.component == Component::swa);
  hit(Sometimes::abort_mamba, aborted.component == Component::mamba);
}

void Coverage::on(const Event&, const Inserted& inserted) {
  const bool load = inserted.cause == InsertCause::load;
  const bool adopted = !inserted.full_adopted.empty() || !inserted.swa_adopted.empty();
  const bool duplicate = !inserted.full_duplicate.empty() || !inserted.swa_duplicate.empty();
  hit(Sometimes::load_adopts_part, load && adopted && duplicate);
  hit(Sometimes::load_adopts_nothing, load && !adopted && inserted.mamba_exist);
  hit(Sometimes::chunk_end_mamba_exist,
      inserted.cause == InsertCause::chunk_end && inserted.mamba_exist);
  hit(Sometimes::finish_mamba_exist, inserted.cause == InsertCause::finish && inserted.mamba_exist);
  hit(Sometimes::retract_inserts, inserted.cause == InsertCause::retract);
  hit(Sometimes::split_by_load, load && split_since_insert_);
  split_since_insert_ = false;
}

void Coverage::on(const Event& event, const Committed& committed) {
  if (committed.boundary == Tokens{0}) {
    hit(Sometimes::commit_empty);
  } else {
    hit(committed.from_load ? Sometimes::commit_load : Sometimes::commit_hit);
  }
  hit(Sometimes::commit_mamba_exist, committed.mamba_exist);
  running_.insert(event.request);
  retracted_.erase(event.request);
}

// ---------------------------------------------------------------- transfers

void Coverage::on(const Event& event, const LoadQueued& queued) {
  loads_[{event.rank, queued.load}] = event.request;
}

void Coverage::on(const Event& event, const LoadStarted&) {
  if (event.rank != RankId{0}) return;
  hit(Sometimes::loads_share_batch, has_started_ && started_in_ == event.step);
  has_started_ = true;
  started_in_ = event.step;
}

void Coverage::on(const Event& event, const LoadFinished& finished) {
  hit(Sometimes::load_fails, !finished.good);
  loads_.erase({event.rank, finished.load});
}

void Coverage::on(const Event& event, const OffloadQueued& queued) {
  const auto only = [&](Component component) {
    return std::ranges::all_of(queued.transfers, [&](const TransferView& transfer) {
      return transfer.component == component;
    });
  };
  hit(Sometimes::offload_state_only, only(Component::mamba));
  hit(Sometimes::offload_swa_only, only(Component::swa));
  offloads_[{event.rank, queued.offload}] = queued.node;
}

void Coverage::on(const Event& event, const OffloadFinished& finished) {
  hit(Sometimes::offload_fails, !finished.good);
  offloads_.erase({event.rank, finished.offload});
}

void Coverage::on(const Event&, const StorePut& put) {
  hit(Sometimes::put_refused, !put.accepted);
  hit(Sometimes::put_again, put.accepted && !put.stored);
}

void Coverage::on(const Event&, const StoreRemoved&) {
  hit(Sometimes::store_removed);
}

void Coverage::on(const Event&, const StoreCleared&) {
  hit(Sometimes::store_cleared);
}

void Coverage::on(const Event&, const FalseAnswer&) {
  hit(Sometimes::false_answer);
}

// ---------------------------------------------------------------- forwards and tree

void Coverage::on(const Event&, const RowsWithdrawn&) {
  hit(Sometimes::pool_shrinks);
}

void Coverage::on(const Event&, const CopyExecuted&) {
  hit(Sometimes::copy_executed);
}

void Coverage::on(const Event&, const SlotCleared&) {
  hit(Sometimes::slot_cleared);
}

void Coverage::on(const Event& event, const ForwardLaunched& launched) {
  for (const SegmentView& segment : launched.segments) {
    if (event.rank != RankId{0} || segment.drafts == Tokens{0}) continue;
    drafts_[{launched.forward, segment.request}] = segment.drafts;
  }
  const auto is_single = [](const SegmentView& segment) { return segment.tokens.size() == 1; };
  const auto singles = std::ranges::count_if(launched.segments, is_single);
  const auto all = static_cast<std::ptrdiff_t>(launched.segments.size());
  hit(Sometimes::forward_several, all > 1);
  hit(Sometimes::forward_mixed, singles > 0 && singles < all);
  for (const SegmentView& segment : launched.segments) {
    hit(Sometimes::two_snapshots, segment.snapshots.size() > 1);
    hit(Sometimes::decode_checkpoint, is_single(segment) && !segment.snapshots.empty());
  }
}

void Coverage::on(const Event&, const ForwardAccepted& accepted) {
  for (const SegmentView& segment : accepted.segments) {
    const auto drafts = drafts_.find({accepted.forward, segment.request});
    if (drafts == drafts_.end()) continue;
    hit(Sometimes::drafts_all_right, segment.drafts == drafts->second);
    hit(Sometimes::drafts_all_wrong, segment.drafts == Tokens{0});
    hit(Sometimes::drafts_some_right,
        segment.drafts > Tokens{0} && segment.drafts < drafts->second);
    const Tokens end = segment.start + Tokens{static_cast<std::int64_t>(segment.tokens.size())};
    hit(Sometimes::drafts_pass_checkpoint,
        !segment.snapshots.empty() && segment.snapshots.back().depth < end);
    drafts_.erase(drafts);
  }
}

void Coverage::on(const Event&, const RowsReleased&) {
  hit(Sometimes::window_release);
}

void Coverage::on(const Event& event, const NodeSplit& split) {
  hit(Sometimes::split);
  split_since_insert_ = true;
  hit(Sometimes::split_while_offloading, std::ranges::any_of(offloads_, [&](const auto& offload) {
        return offload.first.first == event.rank && offload.second == split.lower;
      }));
}

void Coverage::on(const Event&, const Evicted& evicted) {
  hit(Sometimes::evict_cascade, evicted.cause == EvictionCause::cascade);
  hit(Sometimes::evict_asked, evicted.cause == EvictionCause::asked);
  hit(Sometimes::evict_flush, evicted.cause == EvictionCause::flush);
  hit(Sometimes::roll_back, evicted.cause == EvictionCause::roll_back);
  if (evicted.cause == EvictionCause::pressure) hit(point_of(evicted.component));
}

}  // namespace lockstep::sim
