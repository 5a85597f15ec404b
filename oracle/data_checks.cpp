#include "oracle/data_checks.h"

#include <algorithm>

namespace lockstep::oracle {

namespace {

Tokens end_of(const SegmentView& segment) {
  return segment.start + Tokens{static_cast<std::int64_t>(segment.tokens.size())};
}

}  // namespace

void DataChecks::before(const Event& event) {
  if (const auto* finished = std::get_if<LoadFinished>(&event.body)) {
    if (finished->good) check_load(event, *finished);
  }
}

void DataChecks::after(const Event& event) {
  if (const auto* accepted = std::get_if<ForwardAccepted>(&event.body)) {
    for (const SegmentView& segment : accepted->segments) {
      check_segment(event, accepted->forward, segment);
    }
    launches_.erase({event.rank, accepted->forward});
  } else if (const auto* launched = std::get_if<ForwardLaunched>(&event.body)) {
    note_launch(event, *launched);
  } else if (const auto* inserted = std::get_if<Inserted>(&event.body)) {
    if (inserted->cause != InsertCause::load) check_inserted(event, *inserted);
  } else if (const auto* committed = std::get_if<Committed>(&event.body)) {
    commits_[{event.rank, event.request}] = {committed->commit, committed->boundary};
    prepared_.erase({event.rank, event.request});
  } else if (const auto* copied = std::get_if<CopyExecuted>(&event.body)) {
    const LastCommit* commit = commit_of(event, copied->commit);
    if (commit != nullptr) note_copy(event, *copied, commit->boundary);
  } else if (const auto* cleared = std::get_if<SlotCleared>(&event.body)) {
    if (commit_of(event, cleared->commit) != nullptr) note_clearing(event, *cleared);
  }
}

// Null if the request has left that COMMIT behind.
const DataChecks::LastCommit* DataChecks::commit_of(const Event& event, CommitId id) const {
  const auto found = commits_.find({event.rank, event.request});
  return found == commits_.end() || id < found->second.id ? nullptr : &found->second;
}

void DataChecks::note_launch(const Event& event, const ForwardLaunched& launched) {
  const std::uint64_t allocations = scene_.ledger(event.rank).allocations();
  launches_[{event.rank, launched.forward}] = allocations;
  for (const SegmentView& segment : launched.segments) {
    newest_[{event.rank, segment.request}] = launched.forward;
  }
}

// `row`, said to hold `content`, against the digest that the replica kept.
void DataChecks::check_row(RankId rank, RequestId request, Component component, Row row,
                           ContentId content, std::string_view when) {
  const RowDigests* expected = scene_.replica.digests(rank, content);
  if (expected == nullptr) return;
  const std::span<const std::byte> bytes = scene_.inspector(rank).row_bytes(component, row);
  ++scene_.verdict.tally.rows_compared;
  const std::uint64_t digest = row_digest(bytes);
  if (digest == expected->of[index(component)]) return;
  const auto difference = scene_.replica.find_difference(rank, component, content, bytes);
  Where where{.row = row};
  if (difference) where.layer = difference->layer;
  const Tokens end = scene_.geometry().tokens(scene_.contents.pages(content));
  scene_.findings.report("D1", rank, request,
                         std::string(name(component)) + " as the from-scratch run leaves it at " +
                             text(end) + " (" + std::string(when) + "), digest " +
                             hex(expected->of[index(component)]),
                         text(component, row) + " has digest " + hex(digest), where);
}

void DataChecks::check_load(const Event& event, const LoadFinished& finished) {
  const auto load = scene_.ledger(event.rank).loads().find(finished.load);
  if (load == scene_.ledger(event.rank).loads().end()) return;
  const RequestRecord* request = scene_.requests.find(load->second.request);
  if (request == nullptr || request->length() < load->second.boundary) return;
  scene_.advance_replica(*request, load->second.boundary);
  for (const TransferPart& part : load->second.parts) {
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      if (part.contents[i] == kNoContent) continue;
      check_row(event.rank, request->id, part.component, part.rows[i], part.contents[i],
                "when its load is good");
    }
    if (part.component == Component::full && event.rank == RankId{0}) {
      const std::int64_t tokens =
          scene_.geometry().page.value() * static_cast<std::int64_t>(part.rows.size());
      scene_.verdict.tally.tokens_verified += static_cast<std::uint64_t>(tokens);
    }
  }
}

void DataChecks::check_inserted(const Event& event, const Inserted& inserted) {
  const RequestRecord* request = scene_.requests.find(event.request);
  if (request == nullptr) return;
  const auto check_ranges = [&](Component component, std::span<const PageRange> ranges,
                                std::span<const Row> rows) {
    std::size_t next = 0;
    for (const PageRange& range : ranges) {
      for (Pages page = range.begin; page < range.end && next < rows.size(); ++page, ++next) {
        if (rows[next] == kTrapRow || page.index() >= request->chain.size()) continue;
        check_row(event.rank, event.request, component, rows[next], request->chain[page.index()],
                  "at INSERT");
      }
    }
  };
  check_ranges(Component::full, inserted.full_adopted, inserted.full_adopted_rows);
  check_ranges(Component::swa, inserted.swa_adopted, inserted.swa_adopted_rows);
  if (inserted.state == kTrapRow || inserted.mamba_exist) return;
  const ContentId content = scene_.requests.content_at(*request, inserted.end);
  if (content != kNoContent) {
    check_row(event.rank, event.request, Component::mamba, inserted.state, content, "at INSERT");
  }
}

// ---------------------------------------------------------------- accepted forwards

void DataChecks::check_segment(const Event& event, ForwardId forward, const SegmentView& segment) {
  const RequestRecord* request = scene_.requests.find(segment.request);
  if (request == nullptr || segment.tokens.empty() || request->length() < end_of(segment)) return;
  scene_.advance_replica(*request, end_of(segment));
  check_prepared_slot(event, *request);
  if (scene_.geometry().has_full)
    check_written_rows(event, forward, segment, *request, Component::full);
  if (scene_.geometry().has_swa)
    check_written_rows(event, forward, segment, *request, Component::swa);
  if (scene_.geometry().has_mamba) {
    if (newest_[{event.rank, segment.request}] <= forward) {
      check_private_slot(event, segment, *request);
    }
    check_snapshots(event, forward, segment, *request);
  }
  if (event.rank == RankId{0}) scene_.verdict.tally.tokens_verified += segment.tokens.size();
}

void DataChecks::note_copy(const Event& event, const CopyExecuted& copied, Tokens boundary) {
  const Inspector& inspector = scene_.inspector(event.rank);
  const auto source = inspector.row_bytes(Component::mamba, copied.source);
  PreparedSlot prepared{copied.source, copied.q, boundary, row_digest(source), std::nullopt};
  const std::vector<std::byte> copy_of_source(source.begin(), source.end());
  const auto q = inspector.row_bytes(Component::mamba, copied.q);
  const RowLayout& layout = scene_.replica.layout(event.rank, Component::mamba);
  const std::vector<LayerId> layers = layout.layers();
  const LayerId last = *std::ranges::max_element(layers);
  const bool only_last = scene_.config.cache.overlap == OverlapPolicy::per_layer;
  for (const LayerPart& part : layout.parts) {
    if (only_last && part.layer != last) continue;
    const auto in = [&](std::span<const std::byte> row) {
      return row.subspan(part.offset.index(), part.size.index());
    };
    if (!std::ranges::equal(in(copy_of_source), in(q))) prepared.differing_layer = part.layer;
  }
  prepared_[{event.rank, event.request}] = prepared;
}

void DataChecks::note_clearing(const Event& event, const SlotCleared& cleared) {
  const auto bytes = scene_.inspector(event.rank).row_bytes(Component::mamba, cleared.q);
  prepared_[{event.rank, event.request}] = {cleared.q, cleared.q, std::nullopt, row_digest(bytes),
                                            std::nullopt};
}

void DataChecks::check_prepared_slot(const Event& event, const RequestRecord& request) {
  const auto found = prepared_.find({event.rank, request.id});
  if (found == prepared_.end()) return;
  const PreparedSlot prepared = found->second;
  prepared_.erase(found);
  std::uint64_t expected = scene_.replica.empty_state_digest(event.rank);
  if (prepared.boundary) {
    const RowDigests* digests =
        scene_.replica.digests(event.rank, scene_.requests.content_at(request, *prepared.boundary));
    if (digests == nullptr) return;
    expected = digests->of[index(Component::mamba)];
  }
  ++scene_.verdict.tally.rows_compared;
  const std::string what =
      prepared.boundary ? "the state after " + text(*prepared.boundary) : "the state of no tokens";
  if (prepared.digest != expected) {
    scene_.findings.report(
        "D1", event.rank, request.id, "Q begins as " + what + ", digest " + hex(expected),
        text(Component::mamba, prepared.source) + " had digest " + hex(prepared.digest),
        {.row = prepared.source});
  } else if (prepared.differing_layer) {
    scene_.findings.report("D1", event.rank, request.id, "Q begins as " + what,
                           text(Component::mamba, prepared.q) + " differed from its source",
                           {.layer = prepared.differing_layer, .row = prepared.q});
  }
}

bool DataChecks::may_hold(const Event& event, ForwardId forward, Component component, Row row,
                          RequestId request, ContentId content) const {
  const RowRecord& record = scene_.ledger(event.rank).row(component, row);
  const auto launch = launches_.find({event.rank, forward});
  const bool kept = launch == launches_.end() || record.taken <= launch->second;
  if (record.owner == RowOwner::request) return kept && record.request == request;
  return record.owner == RowOwner::tree && record.content == content;
}

void DataChecks::check_written_rows(const Event& event, ForwardId forward,
                                    const SegmentView& segment, const RequestRecord& request,
                                    Component component) {
  const Geometry& geometry = scene_.geometry();
  const std::span<const Row> table = component == Component::full ? segment.full : segment.swa;
  const Tokens end = end_of(segment);
  for (Tokens begin = segment.start; begin < end;) {
    const Pages page = geometry.pages(begin);
    const Tokens stop = std::min(end, geometry.tokens(page + Pages{1}));
    const Row row = page.index() < table.size() ? table[page.index()] : kTrapRow;
    const ContentId content =
        page.index() < request.chain.size() ? request.chain[page.index()] : kNoContent;
    if (row != kTrapRow && may_hold(event, forward, component, row, segment.request, content)) {
      ++scene_.verdict.tally.rows_compared;
      const auto bytes = scene_.inspector(event.rank).row_bytes(component, row);
      if (const auto difference =
              scene_.replica.compare(event.rank, segment.request, component, bytes, begin, stop)) {
        scene_.findings.report(
            "D1", event.rank, segment.request,
            std::string(name(component)) + " tokens " + std::to_string(begin.value()) + " to " +
                std::to_string(stop.value()) + " as the from-scratch run writes them",
            text(component, row) + " differs from token " +
                std::to_string(difference->token->value()),
            {difference->layer, row, difference->token});
      }
    }
    begin = stop;
  }
}

void DataChecks::check_private_slot(const Event& event, const SegmentView& segment,
                                    const RequestRecord& request) {
  const RowRecord& q = scene_.ledger(event.rank).row(Component::mamba, segment.q);
  if (segment.q == kTrapRow || q.owner == RowOwner::free) return;
  const auto bytes = scene_.inspector(event.rank).row_bytes(Component::mamba, segment.q);
  ++scene_.verdict.tally.rows_compared;
  const auto difference = scene_.replica.compare_state(
      event.rank, segment.request, Scene::script(request), bytes, end_of(segment));
  if (!difference) return;
  scene_.findings.report(
      "D1", event.rank, segment.request, "Q holds the state after " + text(end_of(segment)),
      text(Component::mamba, segment.q) + " holds another one, digest " + hex(row_digest(bytes)),
      {.layer = difference->layer, .row = segment.q});
}

void DataChecks::check_snapshots(const Event& event, ForwardId forward, const SegmentView& segment,
                                 const RequestRecord& request) {
  for (const SnapshotView& snapshot : segment.snapshots) {
    if (snapshot.slot == kTrapRow || !Geometry::on_grid(snapshot.depth, scene_.geometry().page))
      continue;
    const ContentId content = scene_.requests.content_at(request, snapshot.depth);
    if (content == kNoContent ||
        !may_hold(event, forward, Component::mamba, snapshot.slot, segment.request, content))
      continue;
    check_row(event.rank, segment.request, Component::mamba, snapshot.slot, content,
              "when its forward is accepted");
  }
}

// ---------------------------------------------------------------- at quiescence

void DataChecks::audit(RankId rank, bool quiescent) {
  if (!quiescent) return;
  const RankLedger& ledger = scene_.ledger(rank);
  scene_.inspector(rank).for_each_node([&](const NodeView& node) {
    const LedgerNode* known = ledger.node(node.id);
    if (node.is_root || known == nullptr || known->tip == kNoContent) return;
    ContentId content = known->tip;
    if (node.state != kTrapRow) {
      check_row(rank, kNoRequest, Component::mamba, node.state, content, "at quiescence");
    }
    for (std::size_t page = node.hashes.size(); page-- > 0 && content != kNoContent;
         content = scene_.contents.parent(content)) {
      if (page < node.full.size() && node.full[page] != kTrapRow) {
        check_row(rank, kNoRequest, Component::full, node.full[page], content, "at quiescence");
      }
      if (page < node.swa.size() && node.swa[page] != kTrapRow) {
        check_row(rank, kNoRequest, Component::swa, node.swa[page], content, "at quiescence");
      }
    }
  });
}

}  // namespace lockstep::oracle
