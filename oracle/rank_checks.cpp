#include "oracle/rank_checks.h"

#include <algorithm>
#include <set>

namespace lockstep::oracle {

namespace {

std::string text_or_none(const std::optional<Tokens>& tokens) {
  return tokens ? text(*tokens) : "none";
}

std::string outcome(const bool* good) {
  if (good == nullptr) return "not settled";
  return *good ? "good" : "failed";
}

template <class Map>
const typename Map::mapped_type* find_in(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

template <class Map>
std::set<typename Map::key_type> keys_of(const Map& a, const Map& b) {
  std::set<typename Map::key_type> keys;
  for (const auto& [key, value] : a) keys.insert(key);
  for (const auto& [key, value] : b) keys.insert(key);
  return keys;
}

}  // namespace

void RankChecks::before(const Event& event) {
  if (has_several_ranks() && std::holds_alternative<StepBegun>(event.body)) compare();
}

void RankChecks::after(const Event& event) {
  if (!has_several_ranks()) return;
  std::visit([&](const auto& body) { note(event, body); }, event.body);
}

void RankChecks::audit(RankId rank, bool quiescent) {
  // Once, when the audit has come to the last rank; a COMMIT's audit falls between two ranks.
  const bool is_last = rank.index() + 1 == books_.size();
  if (quiescent && is_last && has_several_ranks()) compare();
}

void RankChecks::note(const Event& event, const Matched& matched) {
  books_[event.rank.index()].requests[event.request].matched = matched.device_hit;
}

void RankChecks::note(const Event& event, const Committed& committed) {
  Progress& progress = books_[event.rank.index()].requests[event.request];
  progress.device_hit = committed.device_hit;
  progress.boundary = committed.boundary;
}

void RankChecks::note(const Event& event, const ForwardAccepted& accepted) {
  for (const SegmentView& segment : accepted.segments) {
    books_[event.rank.index()].requests[segment.request].fed =
        segment.start + Tokens{static_cast<std::int64_t>(segment.tokens.size())};
  }
}

void RankChecks::note(const Event& event, const LoadFinished& finished) {
  books_[event.rank.index()].loads[finished.load] = finished.good;
}

void RankChecks::note(const Event& event, const OffloadFinished& finished) {
  books_[event.rank.index()].offloads[finished.offload] = finished.good;
}

// ---------------------------------------------------------------- the comparison

void RankChecks::compare() {
  for (std::uint32_t r = 1; r < books_.size(); ++r) {
    const RankId rank{r};
    if (rows_changed_) {
      compare_holdings(rank);
      compare_free_rows(rank);
    }
    if (nodes_changed_) compare_nodes(rank);
    compare_requests(rank);
    compare_outcomes(rank, "load", books_[0].loads, books_[r].loads);
    compare_outcomes(rank, "offload", books_[0].offloads, books_[r].offloads);
  }
  for (StepBook& book : books_) book = {};
  nodes_changed_ = rows_changed_ = false;
}

void RankChecks::compare_holdings(RankId rank) {
  const RankLedger& first = scene_.ledger(RankId{0});
  const RankLedger& other = scene_.ledger(rank);
  if (first.holdings_digest() == other.holdings_digest()) return;
  for (std::uint32_t i = 0; i < scene_.contents.size(); ++i) {
    const ContentId content{i};
    for (Component component : kComponents) {
      const bool on_first = first.tree_row(component, content) != kTrapRow;
      const bool on_other = other.tree_row(component, content) != kTrapRow;
      if (on_first == on_other) continue;
      const auto has = [&](bool present) {
        return (present ? "a " : "no ") + std::string(name(component)) + " row of " +
               describe(content);
      };
      return report(rank, kNoRequest, "a tree with " + has(on_first), has(on_other));
    }
  }
}

std::vector<RankChecks::NodePlace> RankChecks::places(RankId rank) const {
  std::vector<NodePlace> places;
  for (const auto& [id, node] : scene_.ledger(rank).nodes()) {
    if (!node.removed && !node.is_root) places.emplace_back(node.tip, node.begin);
  }
  std::ranges::sort(places);
  return places;
}

void RankChecks::compare_nodes(RankId rank) {
  const std::vector<NodePlace> first = places(RankId{0});
  const std::vector<NodePlace> other = places(rank);
  if (first == other) return;
  std::vector<NodePlace> only_first;
  std::vector<NodePlace> only_other;
  std::ranges::set_difference(first, other, std::back_inserter(only_first));
  std::ranges::set_difference(other, first, std::back_inserter(only_other));
  const auto show = [&](const std::vector<NodePlace>& nodes) {
    if (nodes.empty()) return std::string("no node of its own");
    const auto& [tip, begin] = nodes.front();
    return "a node from page " + std::to_string(begin.value()) + " to the end of " + describe(tip);
  };
  report(rank, kNoRequest, show(only_first), show(only_other));
}

void RankChecks::compare_free_rows(RankId rank) {
  for (Component component : kComponents) {
    const Rows first = scene_.ledger(RankId{0}).free_rows(component);
    const Rows other = scene_.ledger(rank).free_rows(component);
    if (first == other) continue;
    const auto show = [&](Rows rows) {
      return std::to_string(rows.value()) + " free " + std::string(name(component)) + " rows";
    };
    report(rank, kNoRequest, show(first), show(other));
  }
}

void RankChecks::compare_requests(RankId rank) {
  const auto& first = books_[0].requests;
  const auto& other = books_[rank.index()].requests;
  if (first == other) return;
  const auto show = [](const Progress* progress) {
    const Progress none;
    const Progress& p = progress == nullptr ? none : *progress;
    return "matched " + text_or_none(p.matched) + ", committed " + text_or_none(p.device_hit) +
           " to " + text_or_none(p.boundary) + ", fed " + text_or_none(p.fed);
  };
  for (RequestId request : keys_of(first, other)) {
    const Progress* on_first = find_in(first, request);
    const Progress* on_other = find_in(other, request);
    const bool both = on_first != nullptr && on_other != nullptr;
    if (both && *on_first == *on_other) continue;
    report(rank, request, show(on_first), show(on_other));
  }
}

template <class Id>
void RankChecks::compare_outcomes(RankId rank, std::string_view what,
                                  const std::map<Id, bool>& first,
                                  const std::map<Id, bool>& other) {
  if (first == other) return;
  for (Id id : keys_of(first, other)) {
    const bool* on_first = find_in(first, id);
    const bool* on_other = find_in(other, id);
    if (on_first != nullptr && on_other != nullptr && *on_first == *on_other) continue;
    const std::string which = std::string(what) + " " + std::to_string(id.value()) + " ";
    report(rank, kNoRequest, which + outcome(on_first), which + outcome(on_other));
  }
}

// ---------------------------------------------------------------- reports

std::string RankChecks::describe(ContentId content) const {
  if (content == kNoContent) return "nothing known";
  return text(scene_.geometry().tokens(scene_.contents.pages(content))) + ", " +
         scene_.contents.hash(content).hex().substr(0, 12);
}

void RankChecks::report(RankId rank, RequestId request, std::string on_first, std::string on_this) {
  scene_.findings.report("K1", rank, request, "as on rank 0: " + std::move(on_first),
                         std::move(on_this));
}

}  // namespace lockstep::oracle
