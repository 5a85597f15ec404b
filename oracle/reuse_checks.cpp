#include "oracle/reuse_checks.h"

#include <algorithm>
#include <utility>

namespace lockstep::oracle {

namespace {

using oracle::text;

std::string text(std::span<const Tokens> lengths) {
  std::string all = "{";
  for (Tokens length : lengths)
    all += (all.size() > 1 ? ", " : "") + std::to_string(length.value());
  return all + "}";
}

}  // namespace

void ReuseChecks::before(const Event& event) {
  if (const auto* failed = std::get_if<AllocationFailed>(&event.body)) note_refusal(event, *failed);
  if (const auto* gave_up = std::get_if<GaveUp>(&event.body)) check_gave_up(event, *gave_up);
  if (const auto* matched = std::get_if<Matched>(&event.body)) check_query(event, *matched);
  const auto* finished = std::get_if<LoadFinished>(&event.body);
  if (finished == nullptr || finished->good) return;
  for (const auto& [id, request] : scene_.requests.all()) {
    if (!has_ended(request.phase)) met_failed_load_.insert(id);
  }
}

void ReuseChecks::after(const Event& event) {
  std::visit([&](const auto& body) { check(event, body); }, event.body);
}

// ---------------------------------------------------------------- R1

void ReuseChecks::check(const Event& event, const Matched& matched) {
  const MatchRecord* match = scene_.matches.find(event.request);
  if (match == nullptr) return;
  const MatchRecord::Rank& expected = match->ranks[event.rank.index()];
  if (matched.device_hit != expected.expected_hit) {
    scene_.findings.report("R1", event.rank, event.request,
                           "a device hit of " + text(expected.expected_hit),
                           text(matched.device_hit));
  } else if (scene_.geometry().has_full && matched.full_matched != expected.expected_full) {
    scene_.findings.report("R1", event.rank, event.request,
                           text(expected.expected_full) + " of FULL rows matched",
                           text(matched.full_matched));
  }
}

// A request that was admitted, not retracted since, and is matched again, had to start again.
void ReuseChecks::check_query(const Event& event, const Matched& matched) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr) return;
  if (request->phase == RequestPhase::running) started_again_.insert(event.request);
  if (matched.query_store && started_again_.contains(event.request)) {
    scene_.findings.report("R1", event.rank, event.request,
                           "no second query of the store after a failed load", "it is asked");
  }
  if (!matched.query_store && !met_failed_load_.contains(event.request)) {
    scene_.findings.report("R1", event.rank, event.request, "the store asked for the tail",
                           "it is not, although no load has failed");
  }
}

void ReuseChecks::check(const Event& event, const LookedUp& looked_up) {
  if (started_again_.contains(event.request)) {
    scene_.findings.report("R1", event.rank, event.request,
                           "no second query of the store after a failed load", "a LOOKUP");
  }
  const MatchRecord* match = scene_.matches.find(event.request);
  if (match == nullptr) return;
  const std::vector<Tokens>& expected = match->restorable[event.rank.index()];
  if (std::ranges::equal(expected, looked_up.restorable)) return;
  scene_.findings.report("R1", event.rank, event.request, "restorable lengths " + text(expected),
                         text(looked_up.restorable));
}

void ReuseChecks::check(const Event& event, const Voted& voted) {
  const MatchRecord* match = scene_.matches.find(event.request);
  if (match == nullptr) return;
  const Tokens expected = match->expected_boundary();
  if (voted.boundary == expected) return;
  scene_.findings.report("R1", event.rank, event.request, "a boundary of " + text(expected),
                         text(voted.boundary));
}

bool ReuseChecks::others_are_active(RequestId request) const {
  if (scene_.requests.others_run(request)) return true;
  return std::ranges::any_of(scene_.ledgers,
                             [](const RankLedger& ledger) { return !ledger.loads().empty(); });
}

// What eviction could free, leaving out the state at `boundary` itself.
Rows ReuseChecks::evictable_for(RankId rank, Component component, ContentId boundary) const {
  const RankLedger& ledger = scene_.ledger(rank);
  const Rows evictable = ledger.evictable_rows(component);
  const bool keeps_own = component == Component::mamba && boundary != kNoContent &&
                         ledger.tree_row(component, boundary) != kTrapRow &&
                         !ledger.is_state_locked(boundary);
  return keeps_own ? evictable - Rows{1} : evictable;
}

void ReuseChecks::note_refusal(const Event& event, const AllocationFailed& failed) {
  const RequestRecord* request = scene_.requests.find(event.request);
  const MatchRecord* match = scene_.matches.find(event.request);
  if (request == nullptr || match == nullptr) return;
  const ContentId boundary = scene_.requests.content_at(*request, match->expected_boundary());
  const Rows room = scene_.ledger(event.rank).free_rows(failed.component) +
                    evictable_for(event.rank, failed.component, boundary);
  const bool was_admissible =
      failed.component == Component::mamba && others_are_active(event.request);
  if (failed.injected || (failed.wanted > room && !was_admissible))
    refused_[event.request] = event.step;
}

void ReuseChecks::check_gave_up(const Event& event, const GaveUp& gave_up) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr) return;
  if (gave_up.reason == GiveUp::allocation) {
    const auto refused = refused_.find(event.request);
    if (refused != refused_.end() && refused->second == event.step) return;
    scene_.findings.report("R1", event.rank, event.request,
                           "an allocation that free and evictable rows could not cover",
                           "no such allocation failed for it in this step");
  } else if (gave_up.reason == GiveUp::no_room_tail || gave_up.reason == GiveUp::no_room_hit) {
    if (!others_are_active(event.request) && is_short_of_slots(gave_up, *request)) return;
    scene_.findings.report("R1", event.rank, event.request,
                           "too few slots, and nothing else runs or loads",
                           "gave up for want of room at " + text(gave_up.possible));
  }
}

bool ReuseChecks::is_short_of_slots(const GaveUp& gave_up, const RequestRecord& request) const {
  const ContentId boundary = scene_.requests.content_at(request, gave_up.possible);
  const bool is_tail = gave_up.reason == GiveUp::no_room_tail;
  for (std::uint32_t rank = 0; rank < scene_.ledgers.size(); ++rank) {
    const RankLedger& ledger = scene_.ledgers[rank];
    // Under `after_load` T is taken before anybody knows what the tree will have by then.
    const bool needs_target =
        is_tail && (scene_.config.cache.publish == PublishPolicy::after_load ||
                    ledger.tree_row(Component::mamba, boundary) == kTrapRow);
    const Rows demand{needs_target ? 2 : 1};
    const Rows room = ledger.free_rows(Component::mamba) +
                      evictable_for(RankId{rank}, Component::mamba, boundary);
    if (room < demand) return true;
  }
  return false;
}

// ---------------------------------------------------------------- R2

void ReuseChecks::check(const Event& event, const Inserted& inserted) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr || inserted.end == Tokens{0}) return;
  if (scene_.geometry().pages(inserted.end).index() > request->chain.size()) return;
  if (scene_.specification.is_legal_hit(scene_.ledger(event.rank).tree(), request->chain,
                                        inserted.end))
    return;
  scene_.findings.report("R2", event.rank, event.request,
                         "a legal device hit at " + text(inserted.end) + " after INSERT",
                         "the tree lacks a row that it needs");
}

void ReuseChecks::check(const Event& event, const OffloadQueued& queued) {
  queued_by_walk_[event.rank.index()].insert(queued.node);
}

// Marks the states that this walk makes restorable: those of the nodes that it went over.
void ReuseChecks::check(const Event& event, const OffloadWalked& walked) {
  const std::set<NodeId> queued = std::exchange(queued_by_walk_[event.rank.index()], {});
  if (!scene_.geometry().has_mamba) return;
  const RankLedger& ledger = scene_.ledger(event.rank);
  const bool stops_at_known = scene_.config.cache.reoffload == ReoffloadPolicy::never;
  std::vector<const LedgerNode*> chain;
  NodeId id = walked.node;
  for (const LedgerNode* node = ledger.node(id); node != nullptr && !node->is_root;
       node = ledger.node(id)) {
    const bool is_known = node->full_stored || is_pending(event.rank, *node);
    if (stops_at_known && !queued.contains(id) && is_known) break;
    chain.push_back(node);
    id = node->parent;
  }
  const std::set<ContentId> loading = loading_contents(event.rank);
  for (auto node = chain.rbegin(); node != chain.rend(); ++node) {
    const ContentId tip = (*node)->tip;
    if (tip == kNoContent || is_loading(**node, loading)) return;
    if (ledger.tree_row(Component::mamba, tip) != kTrapRow) walked_[event.rank.index()].insert(tip);
  }
}

// Its FULL pages are on their way to the store. Looked for by content: a split since the offload
// was queued has left the mark on both parts.
bool ReuseChecks::is_pending(RankId rank, const LedgerNode& node) const {
  const auto covers = [&](const TransferPart& part) {
    return part.component == Component::full &&
           std::ranges::find(part.contents, node.tip) != part.contents.end();
  };
  return std::ranges::any_of(scene_.ledger(rank).offloads(), [&](const auto& offload) {
    return std::ranges::any_of(offload.second.parts, covers);
  });
}

// Nodes whose rows are still being filled, and all below them, are left out of an OFFLOAD.
std::set<ContentId> ReuseChecks::loading_contents(RankId rank) const {
  std::set<ContentId> contents;
  for (const auto& [id, load] : scene_.ledger(rank).loads()) {
    for (const TransferPart& part : load.parts) {
      contents.insert(part.contents.begin(), part.contents.end());
    }
  }
  return contents;
}

bool ReuseChecks::is_loading(const LedgerNode& node, const std::set<ContentId>& loading) const {
  if (loading.empty()) return false;
  ContentId content = node.tip;
  for (Pages page = node.end; page > node.begin; page -= Pages{1}) {
    if (loading.contains(content)) return true;
    content = scene_.contents.parent(content);
  }
  return false;
}

void ReuseChecks::audit(RankId rank, bool /*quiescent*/) {
  if (scene_.geometry().has_mamba) check_walked(rank);
}

// A state needs to be confirmed once: after that only the store can lose what it needs.
void ReuseChecks::check_walked(RankId rank) {
  std::set<ContentId>& walked = walked_[rank.index()];
  if (walked.empty() || !scene_.ledger(rank).offloads().empty() ||
      scene_.inspector(rank).pending_offloads() > 0)
    return;
  for (ContentId content : walked) {
    if (is_stored_or_excused(rank, content)) continue;
    scene_.findings.report(
        "R2", rank, kNoRequest,
        "the state at " + text(scene_.geometry().tokens(scene_.contents.pages(content))) +
            " restorable from the store after its OFFLOAD",
        "an object that it needs was never put: " + scene_.contents.hash(content).hex());
  }
  walked.clear();
}

bool ReuseChecks::is_stored_or_excused(RankId rank, ContentId content) const {
  const Geometry& geometry = scene_.geometry();
  const bool may_lack_swa = scene_.config.cache.reoffload == ReoffloadPolicy::never;
  bool is_complete = true;
  const auto need = [&](Component component, ContentId part) {
    if (scene_.store.is_excused(rank, component, part)) return true;
    if (!scene_.store.holdings(rank).has(component, part)) is_complete = false;
    return false;
  };
  if (need(Component::mamba, content)) return true;
  const Pages end = scene_.contents.pages(content);
  const Pages window_begin = geometry.window_begin(geometry.tokens(end));
  ContentId part = content;
  for (Pages page = end; page > Pages{0}; page -= Pages{1}, part = scene_.contents.parent(part)) {
    if (geometry.has_full && need(Component::full, part)) return true;
    if (geometry.has_swa && !may_lack_swa && page > window_begin && need(Component::swa, part))
      return true;
  }
  return is_complete;
}

}  // namespace lockstep::oracle
