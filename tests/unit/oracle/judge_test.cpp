// Each invariant is reported when its rule is broken, and a run that breaks nothing reports
// nothing. Expectations come from the meaning of each rule; the healthy run is the twin of every
// broken one.
#include <algorithm>

#include "catch.h"
#include "story.h"

namespace lockstep::oracle::test {

namespace {

constexpr RequestId kFirst{0};
constexpr RequestId kSecond{1};

// Changes the events of one type that `of` selects.
template <class Body>
Story::Tamper change(std::function<void(Body&, Story&)> alter,
                     std::function<bool(const Event&, const Body&)> of = {}) {
  return [=](Event& event, Story& story) {
    auto* body = std::get_if<Body>(&event.body);
    if (body != nullptr && (!of || of(event, *body))) alter(*body, story);
    return true;
  };
}

template <class Body>
Story::Tamper drop(std::function<bool(const Event&, const Body&)> of = {}) {
  return [=](Event& event, Story&) {
    const auto* body = std::get_if<Body>(&event.body);
    return body == nullptr || (of && !of(event, *body));
  };
}

// Something else happens right after the events of one type.
template <class Body>
Story::Tamper followed_by(std::function<void(const Event&, Story&)> more,
                          std::function<bool(const Body&)> of = {}) {
  return [=](Event& event, Story& story) {
    const auto* body = std::get_if<Body>(&event.body);
    if (body == nullptr || (of && !of(*body))) return true;
    story.emit_untampered(event.request, event.body);
    more(event, story);
    return false;
  };
}

bool is_load(const Inserted& inserted) {
  return inserted.cause == InsertCause::load;
}
bool is_restore(const Event&, const Committed& committed) {
  return committed.boundary > Tokens{0};
}
std::function<bool(const Event&, const Inserted&)> of_load() {
  return [](const Event&, const Inserted& inserted) { return is_load(inserted); };
}

void flip(std::span<std::byte> bytes, std::size_t at) {
  bytes[at] ^= std::byte{1};
}

// What the judge finds in the run of `play` with this tampering.
std::set<std::string> found(Story::Tamper tamper) {
  Story story(std::move(tamper));
  story.play();
  return story.found();
}

std::set<std::string> found_twice(Story::Tamper tamper) {
  Story story(std::move(tamper));
  story.play_twice();
  return story.found();
}

}  // namespace

TEST_CASE("a healthy run is passed, and what was compared is counted") {
  Story story;
  story.play();
  INFO(story.report());
  REQUIRE(story.found().empty());
  const Tally& tally = story.judge().verdict().tally;
  REQUIRE(tally.commits_verified == 1);
  REQUIRE(tally.tokens_verified == 9 + 8 + 1);  // computed; restored; computed after the restore
  REQUIRE(tally.logprobs_compared == 9 + 1);
  REQUIRE(tally.rows_compared > 0);
}

TEST_CASE("a healthy run in which a state is there already is passed") {
  Story story;
  story.play_twice();
  INFO(story.report());
  REQUIRE(story.found().empty());
  REQUIRE(story.judge().verdict().tally.commits_verified == 2);
}

TEST_CASE("B1: resuming below what can be restored needs a recorded reason") {
  const auto restart_from_zero = [](std::optional<GaveUp> reason) {
    Story story;
    story.step();
    story.submit(kFirst, tokens(1, 9), Tokens{1});
    story.match(kFirst, Tokens{0}, {}, Tokens{0});
    story.commit_empty(kFirst);
    story.step();
    story.forward(kFirst, Tokens{9});
    story.insert(kFirst, Tokens{8});
    story.offload(kFirst);
    story.finish(kFirst);
    story.flush();
    story.submit(kSecond, tokens(1, 9), Tokens{1});
    story.match(kSecond, Tokens{0}, {Tokens{8}}, Tokens{8});
    if (reason) story.emit(kSecond, *reason);
    story.commit_empty(kSecond);
    return story.found();
  };
  REQUIRE(restart_from_zero({}) == std::set<std::string>{"B1"});
  REQUIRE(restart_from_zero(GaveUp{Tokens{8}, Tokens{0}, GiveUp::injected}).empty());
  REQUIRE(restart_from_zero(GaveUp{Tokens{8}, Tokens{4}, GiveUp::injected}) ==
          std::set<std::string>{"B1"});
  // A refusal that never happened is no reason.
  REQUIRE(restart_from_zero(GaveUp{Tokens{8}, Tokens{0}, GiveUp::allocation}) ==
          std::set<std::string>{"R1"});
}

TEST_CASE("B2 and B3: the request's rows below the boundary are the tree's") {
  REQUIRE(found(change<Committed>(
                    [](Committed&, Story& s) {
                      std::swap(s.request(kSecond).full[0], s.request(kSecond).full[1]);
                    },
                    is_restore))
              .contains("B2"));
  REQUIRE(found(change<Committed>(
                    [](Committed&, Story& s) { s.request(kSecond).swa[1] = kTrapRow; }, is_restore))
              .contains("B3"));
}

TEST_CASE("B4: label, slot and boundary of a state agree, and nothing unfed is inserted") {
  REQUIRE(
      found(change<Inserted>([](Inserted& i, Story&) { i.state_depth -= Tokens{4}; }, of_load()))
          .contains("B4"));
  REQUIRE(found(change<Inserted>([](Inserted& i, Story&) { i.fed += Tokens{1}; })).contains("B4"));
  REQUIRE(found(change<CheckpointTracked>([](CheckpointTracked& c, Story&) {
            c.depth -= Tokens{1};
          })).contains("B4"));
  // The other slot is donated: the request's own one, which was never snapshot.
  REQUIRE(found(change<Inserted>([](Inserted& i, Story& s) { i.state = s.request(kFirst).q; },
                                 [](const Event&, const Inserted& i) { return !is_load(i); }))
              .contains("B4"));
}

TEST_CASE("B5: a key is the hash of the last page that its row holds") {
  const auto with_first_hash = [](auto& queued, Story& story, std::vector<TransferView>& views) {
    static PageHash first;
    first = story.nodes().rbegin()->second.hashes.front();
    views.assign(queued.transfers.begin(), queued.transfers.end());
    views.back().hashes = {&first, 1};
    queued.transfers = views;
  };
  std::vector<TransferView> views;
  REQUIRE(found(change<LoadQueued>([&](LoadQueued& q, Story& s) {
            with_first_hash(q, s, views);
          })).contains("B5"));
  REQUIRE(found(change<OffloadQueued>([&](OffloadQueued& q, Story& s) {
            with_first_hash(q, s, views);
          })).contains("B5"));
}

TEST_CASE("B6: the copy comes from the canonical state, locked, and is set up") {
  REQUIRE(found(change<Committed>([](Committed& c, Story& s) { c.source = s.request(kSecond).q; },
                                  is_restore))
              .contains("B6"));
  REQUIRE(found(change<Committed>(
                    [](Committed&, Story& s) { s.request(kSecond).pending_source = kTrapRow; },
                    is_restore))
              .contains("B6"));
  const auto unlocked = found(drop<LockTaken>(
      [](const Event&, const LockTaken& l) { return l.holder == LockHolder::request; }));
  REQUIRE(unlocked.contains("B6"));
}

TEST_CASE("B7: Q is the request's alone") {
  REQUIRE(found(change<Committed>([](Committed& c, Story&) { c.q = c.source; }, is_restore))
              .contains("B7"));
}

TEST_CASE("B8: a surplus T is freed exactly once") {
  const auto is_slot = [](const Event&, const RowsFreed& f) {
    return f.component == Component::mamba;
  };
  bool in_commit = false;
  Row target;
  const Story::Tamper kept = [&](Event& event, Story&) {
    if (const auto* inserted = std::get_if<Inserted>(&event.body))
      in_commit = inserted->mamba_exist;
    const auto* freed = std::get_if<RowsFreed>(&event.body);
    return !(in_commit && freed != nullptr && is_slot(event, *freed));
  };
  REQUIRE(found_twice(kept).contains("B8"));
  const Story::Tamper again = [&](Event& event, Story& story) {
    const auto* inserted = std::get_if<Inserted>(&event.body);
    if (inserted != nullptr && inserted->mamba_exist) target = inserted->state;
    const auto* freed = std::get_if<RowsFreed>(&event.body);
    if (freed != nullptr && is_slot(event, *freed) && freed->rows.front() == target &&
        target != kTrapRow) {
      target = kTrapRow;
      story.emit_untampered(event.request, event.body);
    }
    return true;
  };
  const std::set<std::string> twice = found_twice(again);
  REQUIRE(twice.contains("B8"));
  REQUIRE(twice.contains("C2"));
}

TEST_CASE("B9: adopted and duplicate ranges partition what came in, as the tree had it") {
  const PageRange half{Pages{0}, Pages{1}};
  REQUIRE(
      found(change<Inserted>([&](Inserted& i, Story&) { i.full_adopted = {&half, 1}; }, of_load()))
          .contains("B9"));
  REQUIRE(found(change<Inserted>([&](Inserted& i, Story&) { i.full_duplicate = {&half, 1}; },
                                 of_load()))
              .contains("B9"));
  // The tree has nothing, so nothing can be a duplicate.
  REQUIRE(found(change<Inserted>(
                    [&](Inserted& i, Story&) { std::swap(i.full_adopted, i.full_duplicate); },
                    of_load()))
              .contains("B9"));
}

TEST_CASE("B10: one copy per COMMIT, before the first results") {
  REQUIRE(found(followed_by<CopyExecuted>([](const Event& e, Story& s) {
            s.emit_untampered(e.request, e.body);
          })).contains("B10"));
  REQUIRE(found(drop<CopyExecuted>()).contains("B10"));
  // A copy that an older COMMIT asked for does not count for this one.
  REQUIRE(found(change<CopyExecuted>([](CopyExecuted& c, Story&) {
            c.commit = CommitId{c.commit.value() - 1};
          })).contains("B10"));
}

TEST_CASE("B11: nothing fails between INSERT and COMMIT") {
  const auto fails = followed_by<Inserted>(
      [](const Event& e, Story& s) {
        s.emit_untampered(e.request, AllocationFailed{Component::mamba, Purpose::private_slot,
                                                      Rows{1}, Rows{0}, Rows{0}, false});
      },
      is_load);
  REQUIRE(found(fails).contains("B11"));
  REQUIRE(found(drop<Committed>(is_restore)).contains("B11"));
}

TEST_CASE("C1: every row has one owner") {
  // Taken while the tree owns it.
  REQUIRE(found(followed_by<Inserted>(
                    [](const Event& e, Story& s) {
                      const Row row = s.nodes().rbegin()->second.full.front();
                      s.emit_untampered(
                          e.request, RowsAllocated{Component::full, Purpose::forward, {&row, 1}});
                    },
                    is_load))
              .contains("C1"));
  REQUIRE(found(drop<Evicted>()).contains("C1"));
  // A slot that nobody has: never given back.
  REQUIRE(found(followed_by<RequestFinished>([](const Event&, Story& s) {
            s.free_list(Component::mamba).pop_back();
          })).contains("C1"));
  // Another owner than reported: its rows are on the free list, too.
  REQUIRE(found(followed_by<LoadFinished>([](const Event&, Story& s) {
            s.free_list(Component::full).push_back(s.nodes().rbegin()->second.full.front());
          })).contains("C1"));
  // A load into a row that the tree does not keep.
  std::vector<TransferView> views;
  const Row stray{8};
  REQUIRE(found(change<LoadQueued>([&](LoadQueued& q, Story&) {
            views.assign(q.transfers.begin(), q.transfers.end());
            views.back().rows = {&stray, 1};
            q.transfers = views;
          })).contains("C1"));
}

TEST_CASE("C2: free lists are sets") {
  REQUIRE(found(followed_by<RowsFreed>([](const Event& e, Story& s) {
            s.emit_untampered(e.request, e.body);
          })).contains("C2"));
  REQUIRE(found(followed_by<LoadFinished>([](const Event&, Story& s) {
            s.free_list(Component::full).push_back(s.free_list(Component::full).front());
          })).contains("C2"));
}

TEST_CASE("C3: lock counts equal open tickets, and locked rows stay") {
  REQUIRE(
      found(drop<LockReleased>()).contains("C3"));  // then flush() takes rows under an open ticket
  REQUIRE(found(followed_by<LockReleased>([](const Event& e, Story& s) {
            s.emit_untampered(e.request, e.body);
          })).contains("C3"));
  REQUIRE(found(followed_by<LoadFinished>([](const Event&, Story& s) {
            ++s.nodes().rbegin()->second.full_locks;
          })).contains("C3"));
  REQUIRE(found(followed_by<LoadFinished>([](const Event&, Story& s) {
            ++s.nodes().rbegin()->second.swa_locks[1];
          })).contains("C3"));
  REQUIRE(found(followed_by<LoadFinished>([](const Event&, Story& s) {
            ++s.nodes().rbegin()->second.state_locks;
          })).contains("C3"));
}

TEST_CASE("C4: all kinds of rows add up to the pool") {
  REQUIRE(found(followed_by<LoadFinished>([](const Event&, Story& s) {
            s.shown_evictable_error = Rows{1};
          })).contains("C4"));
}

TEST_CASE("C5: nothing is left over at quiescence") {
  const auto leaves_lock = followed_by<RequestFinished>([](const Event&, Story& s) {
    if (s.nodes().size() == 2) s.lock(kNoRequest, LockHolder::offload, s.nodes().rbegin()->first);
  });
  REQUIRE(found(leaves_lock) ==
          std::set<std::string>{"C5", "C3"});  // the first node is flushed under its ticket
  const auto leaves_mark = followed_by<LoadFinished>(
      [](const Event&, Story& s) { s.nodes().rbegin()->second.offload_pending = true; });
  REQUIRE(found(leaves_mark) == std::set<std::string>{"C5"});
}

TEST_CASE("C6: the shape of nodes") {
  const auto with_node = [](std::function<void(StoryNode&)> alter) {
    return found(followed_by<LoadFinished>(
        [=](const Event&, Story& s) { alter(s.nodes().rbegin()->second); }));
  };
  REQUIRE(with_node([](StoryNode& n) { n.hashes.pop_back(); }).contains("C6"));
  REQUIRE(with_node([](StoryNode& n) { std::swap(n.hashes[0], n.hashes[1]); }).contains("C6"));
  REQUIRE(with_node([](StoryNode& n) { n.begin = Pages{1}; }).contains("C6"));
  REQUIRE(with_node([](StoryNode& n) { n.state = kTrapRow; }).contains("C6"));
}

TEST_CASE("S1: a flag is set only for what the store accepted") {
  const auto of_full = [](const Event&, const StorePut& put) {
    return put.key.find("/full/") != std::string_view::npos;
  };
  REQUIRE(found(drop<StorePut>(of_full)).contains("S1"));
  REQUIRE(found(change<StorePut>([](StorePut& put, Story&) { put.accepted = false; }, of_full))
              .contains("S1"));
}

TEST_CASE("S2: a flagged node has flagged ancestors") {
  const auto flag_child = [](bool parent_too) {
    Story story;
    story.step();
    story.emit(kNoRequest, NodeCreated{NodeId{2}, NodeId{1}, Pages{0}, Pages{1}});
    story.emit(kNoRequest, NodeCreated{NodeId{3}, NodeId{2}, Pages{1}, Pages{2}});
    if (parent_too)
      story.emit(kNoRequest, StoredFlagSet{NodeId{2}, Component::full, {Pages{0}, Pages{1}}});
    story.emit(kNoRequest, StoredFlagSet{NodeId{3}, Component::full, {Pages{1}, Pages{2}}});
    return story.found();
  };
  REQUIRE(flag_child(false) == std::set<std::string>{"S2"});
  REQUIRE(flag_child(true).empty());

  // In full: what the tree shows at the audit.
  const auto shows_flagged_child = [](bool parent_too) {
    return found(followed_by<LoadFinished>([=](const Event&, Story& s) {
      const NodeId parent = s.nodes().rbegin()->first;
      StoryNode child = s.nodes().at(parent);
      child.parent = parent;
      child.full_stored = true;
      s.nodes().at(parent).full_stored = parent_too;
      s.nodes()[NodeId{99}] = child;
    }));
  };
  REQUIRE(shows_flagged_child(false).contains("S2"));
  REQUIRE(!shows_flagged_child(true).contains("S2"));
}

TEST_CASE("S3 and D1: what a load brings is what was put, and what the run would compute") {
  const auto corrupt = [](Component component, std::size_t at) {
    return found(change<LoadFinished>([=](LoadFinished&, Story& s) {
      const StoryNode& node = s.nodes().rbegin()->second;
      const Row row = component == Component::full  ? node.full[0]
                      : component == Component::swa ? node.swa[1]
                                                    : node.state;
      flip(s.bytes(component, row), at);
    }));
  };
  // A slot's layer is {state, count} and {three inputs, tag}: byte 0 is temporal, byte 16 the conv
  // part.
  for (const auto& [component, at] : {std::pair{Component::full, 0},
                                      {Component::swa, 8},
                                      {Component::mamba, 0},
                                      {Component::mamba, 16}}) {
    const std::set<std::string> names = corrupt(component, static_cast<std::size_t>(at));
    REQUIRE(names.contains("S3"));
    REQUIRE(names.contains("D1"));
  }
}

TEST_CASE("D1: rows, tracked states, Q and the tree equal the from-scratch run") {
  const auto first_forward = [](std::function<void(ForwardAccepted&, Story&)> alter) {
    return found(change<ForwardAccepted>(alter, [](const Event&, const ForwardAccepted& f) {
      return f.segments.front().start == Tokens{0};
    }));
  };
  REQUIRE(first_forward([](ForwardAccepted& f, Story& s) {
            flip(s.bytes(Component::full, f.segments[0].full[1]), 3);
          }).contains("D1"));
  REQUIRE(first_forward([](ForwardAccepted& f, Story& s) {
            flip(s.bytes(Component::swa, f.segments[0].swa[2]), 3);
          }).contains("D1"));
  REQUIRE(first_forward([](ForwardAccepted& f, Story& s) {
            flip(s.bytes(Component::mamba, f.segments[0].snapshots[0].slot), 9);
          }).contains("D1"));
  REQUIRE(first_forward([](ForwardAccepted& f, Story& s) {
            flip(s.bytes(Component::mamba, f.segments[0].q), 0);
          }) == std::set<std::string>{"D1"});
  REQUIRE(first_forward([](ForwardAccepted&, Story&) {}).empty());

  REQUIRE(found(change<SlotCleared>([](SlotCleared& c, Story& s) {
            flip(s.bytes(Component::mamba, c.q), 0);
          })).contains("D1"));
  const std::size_t last_layer = 6 * 8;
  REQUIRE(found(change<CopyExecuted>([=](CopyExecuted& c, Story& s) {
            flip(s.bytes(Component::mamba, c.q), last_layer);
          })).contains("D1"));
  REQUIRE(found(change<Inserted>(
                    [](Inserted& i, Story& s) {
                      flip(s.bytes(Component::full, i.full_adopted_rows[0]), 0);
                    },
                    [](const Event&, const Inserted& i) { return !is_load(i); }))
              .contains("D1"));
  // After everything was accepted: only the audit at quiescence can see it.
  REQUIRE(found(change<RequestFinished>(
              [](RequestFinished&, Story& s) {
                flip(s.bytes(Component::swa, s.nodes().rbegin()->second.swa[1]), 0);
              },
              [](const Event& e, const RequestFinished&) { return e.request == kSecond; })) ==
          std::set<std::string>{"D1"});
}

TEST_CASE("D1 and D2: continuing from the state of another depth shows in rows and outputs") {
  // The state of one page earlier is copied into Q.
  const auto names = found(change<CopyExecuted>(
      [](CopyExecuted& c, Story& s) { s.model().clear_slot(s.bytes(Component::mamba, c.q)); }));
  REQUIRE(names.contains("D1"));
  REQUIRE(names.contains("D2"));
}

// Whatever the logits say (tests/unit/oracle/sensitivity_test.cpp): in the loaded state, and where
// it is copied to be continued. Of the copy only the last layer is compared as it is; the others
// may be at work already, which shows in Q behind the forward unless rounding hides it.
TEST_CASE("D1: one flipped bit of a restored state, in every family") {
  for (const char* mixer : {"mamba2", "gdn", "kda", "shortconv", "full+mamba2"}) {
    INFO(mixer);
    const auto damaged = [&](Story::Tamper tamper) {
      Story story(std::move(tamper), "hybrid-nano", 1,
                  std::vector<std::string>{"swa", "full", mixer});
      story.play();
      return story.found();
    };
    const auto low_bit = [](std::span<std::byte> state, std::size_t word) {
      flip(state, word * sizeof(float));
    };
    const auto words = [](std::span<std::byte> state) { return state.size() / sizeof(float); };
    REQUIRE(damaged({}).empty());
    for (const bool last : {false, true}) {
      REQUIRE(damaged(change<LoadFinished>([&](LoadFinished&, Story& s) {
                const std::span<std::byte> state =
                    s.bytes(Component::mamba, s.nodes().rbegin()->second.state);
                low_bit(state, last ? words(state) - 1 : 0);
              })).contains("D1"));
    }
    REQUIRE(damaged(change<CopyExecuted>([&](CopyExecuted& c, Story& s) {
              const std::span<std::byte> state = s.bytes(Component::mamba, c.q);
              low_bit(state, words(state) - 1);
            })).contains("D1"));
  }
}

TEST_CASE("D2: every output equals the from-scratch run") {
  std::vector<std::byte> outputs;
  std::vector<SegmentView> segments;
  Story story(change<ForwardAccepted>([&](ForwardAccepted& f, Story&) {
    segments.assign(f.segments.begin(), f.segments.end());
    outputs.assign(segments[0].outputs.begin(), segments[0].outputs.end());
    flip(outputs, 0);
    segments[0].outputs = outputs;
    f.segments = segments;
  }));
  story.play();
  REQUIRE(story.found() == std::set<std::string>{"D2"});
  const Violation& first = story.judge().verdict().violations.front();
  REQUIRE(first.request == kFirst);
  REQUIRE(first.token == Tokens{0});
  REQUIRE(story.judge().verdict().requests.at(kFirst).differing_logprobs == 1);
}

TEST_CASE("a numeric model's run is passed with KL 0 to the replica and a small one to fp64") {
  Story story({}, "inkling-pico");
  story.play();
  INFO(story.report());
  REQUIRE(story.found().empty());
  const RequestComparison& restored = story.judge().verdict().requests.at(kSecond);
  REQUIRE(restored.logprobs_compared == 1);
  REQUIRE(restored.differing_logprobs == 0);
  REQUIRE(restored.kl_max == 0.0);
  REQUIRE(restored.kl_reference_max.value() <= 1e-9);
}

TEST_CASE("D2 without D3: a logit that is off by one bit; both: logits of another state") {
  std::vector<std::byte> outputs;
  std::vector<SegmentView> segments;
  const auto change_output = [&](std::function<void(std::span<std::byte>)> alter) {
    Story story(change<ForwardAccepted>([&](ForwardAccepted& f, Story&) {
                  segments.assign(f.segments.begin(), f.segments.end());
                  outputs.assign(segments[0].outputs.begin(), segments[0].outputs.end());
                  alter(outputs);
                  segments[0].outputs = outputs;
                  f.segments = segments;
                }),
                "inkling-pico");
    story.play();
    REQUIRE(story.judge().verdict().requests.at(kSecond).differing_logprobs > 0);
    return story.found();
  };
  REQUIRE(change_output([](std::span<std::byte> logits) { flip(logits, 0); }) ==
          std::set<std::string>{"D2"});
  // Every logit exchanged with its neighbour.
  REQUIRE(change_output([](std::span<std::byte> logits) {
            for (std::size_t at = 0; at + 8 <= logits.size(); at += 8) {
              std::swap_ranges(logits.begin() + at, logits.begin() + at + 4,
                               logits.begin() + at + 4);
            }
          }) == std::set<std::string>{"D2", "D3"});
}

TEST_CASE("R1: hit, lengths and vote equal the specification") {
  REQUIRE(
      found(change<Matched>([](Matched& m, Story&) { m.device_hit = Tokens{4}; })).contains("R1"));
  const std::vector<Tokens> too_many{Tokens{4}, Tokens{8}};
  const auto of_second = [](const Event& e, const LookedUp&) { return e.request == kSecond; };
  REQUIRE(found(change<LookedUp>([&](LookedUp& l, Story&) { l.restorable = too_many; },
                                 of_second)) == std::set<std::string>{"R1"});
  REQUIRE(found(change<LookedUp>([&](LookedUp& l, Story&) { l.restorable = {}; }, of_second)) ==
          std::set<std::string>{"R1"});
  REQUIRE(found(change<Voted>([](Voted& v, Story&) { v.boundary = Tokens{4}; })).contains("R1"));
}

TEST_CASE("R1: as many FULL rows are matched as the tree has") {
  REQUIRE(found(change<Matched>([](Matched& m, Story&) { m.full_matched = Tokens{4}; })) ==
          std::set<std::string>{"R1"});
}

TEST_CASE("R1 and B1: what a store denies falsely is not held against the linker") {
  // All objects are there; the second request's LOOKUP is told that the state at 8 is not.
  const auto found_when = [](bool is_denied) {
    std::string key;
    return found([&, is_denied](Event& event, Story& story) {
      auto* looked_up = std::get_if<LookedUp>(&event.body);
      if (looked_up == nullptr || event.request != kSecond) return true;
      key = story.key(story.contents().hash(story.request(kSecond).chain[1]), Component::mamba);
      if (is_denied) story.emit_untampered(kNoRequest, FalseAnswer{key, false});
      looked_up->restorable = {};
      return true;
    });
  };
  REQUIRE(found_when(false) == std::set<std::string>{"R1"});  // it left out what it was told of
  // The lengths are right then; the vote and the COMMIT at 8 are not.
  REQUIRE(found_when(true) == std::set<std::string>{"B1", "R1"});
}

TEST_CASE("R1: a false answer holds for one LOOKUP") {
  Story story([](Event& event, Story& s) {
    if (event.request != kSecond || !std::holds_alternative<Matched>(event.body)) return true;
    const std::string key = s.key(s.contents().hash(s.request(kSecond).chain[1]), Component::mamba);
    s.emit_untampered(kNoRequest, FalseAnswer{key, false});  // somebody else's: a MATCH follows
    return true;
  });
  story.play();
  REQUIRE(story.found().empty());
}

TEST_CASE("R1: a request that starts again because of a failed load does not ask the store") {
  const auto matched_again = [](bool load_fails, bool asks) {
    Story story([=](Event& event, Story& s) {
      auto* finished = std::get_if<LoadFinished>(&event.body);
      if (finished == nullptr) return true;
      finished->good = !load_fails;
      s.emit_untampered(event.request, event.body);
      s.emit_untampered(kSecond, Matched{Tokens{8}, Tokens{8}, NodeId{3}, asks});
      return false;
    });
    story.play();
    return story.found().contains("R1");
  };
  REQUIRE_FALSE(matched_again(true, false));
  REQUIRE(matched_again(true, true));
  // Without a failed load there is no reason not to ask.
  REQUIRE(matched_again(false, false));
}

TEST_CASE("C1: a quarantined row is freed when nobody refers to it any more") {
  const auto rolled_back = [](bool is_referred_to) {
    Story story;
    story.step();
    story.submit(kFirst, tokens(1, 9), Tokens{1});
    story.match(kFirst, Tokens{0}, {}, Tokens{0});
    story.commit_empty(kFirst);
    story.step();
    story.forward(kFirst, Tokens{9});
    story.insert(kFirst, Tokens{8});
    StoryRequest& request = story.request(kFirst);
    if (!is_referred_to) std::ranges::fill(request.full, kTrapRow);
    if (!is_referred_to) std::ranges::fill(request.swa, kTrapRow);
    story.evict(request.node, EvictionCause::roll_back);
    return story.found();
  };
  REQUIRE(rolled_back(true) == std::set<std::string>{"C1"});
  REQUIRE(rolled_back(false).empty());
}

TEST_CASE("C1 and C4: rows that leave a pool for good are free, and counted") {
  const auto withdrawn = [](std::function<void(Story&)> withdraw) {
    return found(followed_by<LoadFinished>([=](const Event&, Story& s) { withdraw(s); }));
  };
  const auto take = [](Story& s) {
    std::vector<Row>& free = s.free_list(Component::full);
    const Row row = free.front();
    free.erase(free.begin());
    return row;
  };
  REQUIRE(withdrawn([=](Story& s) {
            const Row row = take(s);
            s.withdrawn[index(Component::full)].push_back(row);
            s.emit_untampered(kNoRequest, RowsWithdrawn{Component::full, {&row, 1}});
          }).empty());
  // Nobody has the row, and it was not reported to be gone.
  REQUIRE(withdrawn([=](Story& s) { take(s); }).contains("C4"));
  REQUIRE(withdrawn([=](Story& s) {
            s.withdrawn[index(Component::full)].push_back(take(s));
          }).contains("C1"));
  // The tree's.
  REQUIRE(withdrawn([](Story& s) {
            const Row row = s.nodes().rbegin()->second.full.front();
            s.emit_untampered(kNoRequest, RowsWithdrawn{Component::full, {&row, 1}});
          }).contains("C1"));
}

TEST_CASE("R1: want of room is true") {
  const auto refused = [](Rows wanted) {
    Story story;
    story.step();
    story.submit(kFirst, tokens(1, 9), Tokens{1});
    story.match(kFirst, Tokens{0}, {}, Tokens{0});
    // Eight rows are free in every pool, nothing is in the tree.
    story.emit(kFirst,
               AllocationFailed{Component::full, Purpose::load, wanted, Rows{0}, Rows{0}, false});
    story.emit(kFirst, GaveUp{Tokens{8}, Tokens{0}, GiveUp::allocation});
    return story.found();
  };
  REQUIRE(refused(Rows{9}).empty());
  REQUIRE(refused(Rows{8}) == std::set<std::string>{"R1"});
  // With slots to spare, no room for a state is never a reason.
  Story story;
  story.step();
  story.submit(kFirst, tokens(1, 9), Tokens{1});
  story.match(kFirst, Tokens{0}, {}, Tokens{0});
  story.emit(kFirst, GaveUp{Tokens{8}, Tokens{0}, GiveUp::no_room_tail});
  REQUIRE(story.found() == std::set<std::string>{"R1"});
}

TEST_CASE("R2: nothing donated is lost without a reason") {
  // The INSERT comes without the window's SWA row.
  REQUIRE(found(change<Inserted>(
                    [](Inserted& i, Story&) { i.swa_adopted = {}, i.swa_adopted_rows = {}; },
                    [](const Event&, const Inserted& i) { return !is_load(i); }))
              .contains("R2"));
  // The state is never put, and nothing fails.
  const Story::Tamper no_state = [](Event& event, Story&) {
    const auto* put = std::get_if<StorePut>(&event.body);
    const auto* flag = std::get_if<StoredFlagSet>(&event.body);
    if (put != nullptr && put->key.find("/mamba/") != std::string_view::npos) return false;
    return flag == nullptr || flag->component != Component::mamba;
  };
  REQUIRE(found(no_state).contains("R2"));
  // The store refused it: nobody's fault, though flags must not be set.
  const Story::Tamper refused = [](Event& event, Story&) {
    auto* put = std::get_if<StorePut>(&event.body);
    if (put != nullptr && put->key.find("/mamba/") != std::string_view::npos)
      put->accepted = false, put->stored = false;
    const auto* flag = std::get_if<StoredFlagSet>(&event.body);
    return flag == nullptr || flag->component != Component::mamba;
  };
  REQUIRE(!found(refused).contains("R2"));
  // A state disappears from the tree without an eviction.
  REQUIRE(found(followed_by<LoadFinished>([](const Event&, Story& s) {
            StoryNode& node = s.nodes().rbegin()->second;
            s.free_list(Component::mamba).push_back(node.state);
            node.state = kTrapRow;
          })).contains("R2"));
}

TEST_CASE("L1 and L2: every request ends, with the tokens of the from-scratch run") {
  const auto of_second = [](const Event& e, const RequestFinished&) {
    return e.request == kSecond;
  };
  REQUIRE(found(drop<RequestFinished>(of_second)) == std::set<std::string>{"L1", "L2"});
  const auto other_token = change<TokenAccepted>(
      [](TokenAccepted& t, Story&) { t.token = TokenId{t.token.value() + 1}; });
  REQUIRE(found(other_token) == std::set<std::string>{"L2"});
  REQUIRE(found(drop<TokenAccepted>()) == std::set<std::string>{"L2"});
}

TEST_CASE("a violation is reported once per request and row in a step, and a hundred are kept") {
  Story story;
  story.step();
  story.submit(kFirst, tokens(1, 9), Tokens{1});
  for (int i = 0; i < 3; ++i) story.emit(kFirst, Matched{Tokens{4}, Tokens{4}, NodeId{1}, true});
  REQUIRE(story.judge().verdict().violations.size() == 1);
  REQUIRE(story.judge().verdict().violations.front().step == StepId{1});
  for (int i = 0; i < 150; ++i) {
    story.step();
    story.emit(kFirst, Matched{Tokens{4}, Tokens{4}, NodeId{1}, true});
  }
  REQUIRE(story.judge().verdict().violations.size() == 100);
  REQUIRE(story.judge().full());
}

TEST_CASE("what the harness finds itself is kept as it is") {
  Story story;
  Violation violation;
  violation.invariant = "CHECK:tree.root";
  story.judge().report(violation);
  REQUIRE(story.found() == std::set<std::string>{"CHECK:tree.root"});
}

}  // namespace lockstep::oracle::test
