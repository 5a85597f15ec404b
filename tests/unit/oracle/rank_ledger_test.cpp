// The ledger follows events: owners, holdings, locks and splits, worked out by hand.
#include "oracle/rank_ledger.h"
#include "catch.h"
#include "story.h"

namespace lockstep::oracle {

namespace {

constexpr RequestId kRequest{0};

// A request of four pages of one token each, whose rows 1 .. 4 go into the tree at node 2.
class Fixture {
 public:
  Fixture()
      : requests_(contents_, geometry(), "m", "l"), ledger_(contents_, requests_, inspector_) {
    const std::vector<TokenId> prompt = test::tokens(10, 5);
    apply(RequestSubmitted{prompt, Tokens{1}, {}, {}, false});
    for (std::uint32_t page = 0; page < 4; ++page)
      chain.push_back(requests_.find(kRequest)->chain[page]);
  }

  static Geometry geometry() {
    Geometry geometry;
    geometry.window = Tokens{2};
    geometry.has_swa = geometry.has_mamba = true;
    return geometry;
  }

  void apply(EventBody body) {
    const Event event{StepId{1}, Nanoseconds{0}, RankId{0}, kRequest, std::move(body)};
    requests_.apply(event);
    ledger_.apply(event);
  }

  void allocate(Component component, std::vector<Row> rows) {
    apply(RowsAllocated{component, Purpose::forward, rows});
  }

  void insert_four_pages() {
    const std::vector<Row> rows{Row{1}, Row{2}, Row{3}, Row{4}};
    const PageRange all{Pages{0}, Pages{4}};
    allocate(Component::full, rows);
    allocate(Component::swa, rows);
    allocate(Component::mamba, {Row{7}});
    apply(NodeCreated{NodeId{2}, NodeId{1}, Pages{0}, Pages{4}});
    Inserted inserted;
    inserted.cause = InsertCause::chunk_end;
    inserted.end = inserted.fed = inserted.state_depth = Tokens{4};
    inserted.full_adopted = inserted.swa_adopted = {&all, 1};
    inserted.full_adopted_rows = inserted.swa_adopted_rows = rows;
    inserted.state = Row{7};
    apply(inserted);
  }

  const RankLedger& ledger() const { return ledger_; }
  std::vector<ContentId> chain;

 private:
  test::Story inspector_;  // for the pools' sizes: eight rows each
  ContentTable contents_;
  RequestBook requests_;
  RankLedger ledger_;
};

}  // namespace

TEST_CASE("rows go from the pool to a request, to the tree, out of it, and back") {
  Fixture fixture;
  const RankLedger& ledger = fixture.ledger();
  REQUIRE(ledger.free_rows(Component::full) == Rows{8});
  fixture.insert_four_pages();
  REQUIRE(ledger.free_rows(Component::full) == Rows{4});
  REQUIRE(ledger.row(Component::full, Row{3}).owner == RowOwner::tree);
  REQUIRE(ledger.row(Component::full, Row{3}).content == fixture.chain[2]);
  REQUIRE(ledger.tree_row(Component::mamba, fixture.chain[3]) == Row{7});
  REQUIRE(ledger.tree_row(Component::mamba, fixture.chain[2]) == kTrapRow);
  REQUIRE(ledger.tree().has(Component::swa, fixture.chain[1]));

  const Row second{2};
  fixture.apply(Evicted{
      NodeId{2}, Component::swa, {Pages{1}, Pages{2}}, {&second, 1}, EvictionCause::pressure});
  REQUIRE(ledger.row(Component::swa, second).owner == RowOwner::leaving);
  REQUIRE(!ledger.tree().has(Component::swa, fixture.chain[1]));
  fixture.apply(RowsFreed{Component::swa, {&second, 1}});
  REQUIRE(ledger.row(Component::swa, second).owner == RowOwner::free);
  REQUIRE(ledger.free_rows(Component::swa) == Rows{5});
}

TEST_CASE("a ticket counts on the path, on its SWA pages and on one state, also across a split") {
  Fixture fixture;
  const RankLedger& ledger = fixture.ledger();
  fixture.insert_four_pages();
  REQUIRE(ledger.evictable_rows(Component::full) == Rows{4});
  REQUIRE(ledger.evictable_rows(Component::swa) == Rows{4});
  REQUIRE(ledger.evictable_rows(Component::mamba) == Rows{1});

  fixture.apply(LockTaken{LockId{1}, LockHolder::request, NodeId{2}, {Pages{2}, Pages{4}}, true});
  REQUIRE(ledger.evictable_rows(Component::full) == Rows{0});
  REQUIRE(ledger.evictable_rows(Component::swa) == Rows{2});
  REQUIRE(ledger.evictable_rows(Component::mamba) == Rows{0});
  REQUIRE(ledger.is_state_locked(fixture.chain[3]));

  fixture.apply(NodeSplit{NodeId{3}, NodeId{2}, Pages{3}});
  const LedgerNode* upper = ledger.node(NodeId{3});
  const LedgerNode* lower = ledger.node(NodeId{2});
  REQUIRE(upper->tip == fixture.chain[2]);
  REQUIRE(lower->tip == fixture.chain[3]);
  REQUIRE(lower->parent == NodeId{3});
  REQUIRE(upper->parent == NodeId{1});
  REQUIRE(upper->full_locks == 1);
  REQUIRE(upper->state_locks == 0);
  REQUIRE(lower->state_locks == 1);
  REQUIRE(ledger.swa_locks(fixture.chain[2]) == 1);
  REQUIRE(ledger.swa_locks(fixture.chain[3]) == 1);

  // Only the upper part is locked now.
  fixture.apply(LockTaken{LockId{2}, LockHolder::offload, NodeId{3}, {Pages{2}, Pages{3}}, false});
  fixture.apply(LockReleased{LockId{1}});
  REQUIRE(ledger.evictable_rows(Component::full) == Rows{1});
  REQUIRE(ledger.evictable_rows(Component::swa) == Rows{3});
  REQUIRE(ledger.evictable_rows(Component::mamba) == Rows{1});
  fixture.apply(LockReleased{LockId{2}});
  REQUIRE(ledger.locks().empty());
  REQUIRE(ledger.node(NodeId{1})->full_locks == 0);
}

TEST_CASE("transfers and pending copies hold references until they end") {
  Fixture fixture;
  const RankLedger& ledger = fixture.ledger();
  fixture.insert_four_pages();
  const Row state{7};
  const std::vector<Row> rows{Row{3}, Row{4}};
  const std::vector<TransferView> views{{Component::full, rows, {}, {Pages{2}, Pages{4}}}};
  fixture.apply(OffloadQueued{OffloadId{5}, NodeId{2}, views});
  REQUIRE(ledger.row(Component::full, Row{4}).references == 1);
  REQUIRE(ledger.offloads().at(OffloadId{5}).parts[0].contents ==
          std::vector{fixture.chain[2], fixture.chain[3]});
  fixture.apply(OffloadFinished{OffloadId{5}, true});
  REQUIRE(ledger.row(Component::full, Row{4}).references == 0);

  fixture.apply(
      Committed{Tokens{4}, Tokens{4}, NodeId{2}, state, Row{8}, false, false, CommitId{2}});
  REQUIRE(ledger.row(Component::mamba, state).references == 1);
  fixture.apply(CopyExecuted{state, Row{8}, CommitId{1}});  // of a COMMIT that was left behind
  REQUIRE(ledger.row(Component::mamba, state).references == 1);
  fixture.apply(CopyExecuted{state, Row{8}, CommitId{2}});
  REQUIRE(ledger.row(Component::mamba, state).references == 0);
}

TEST_CASE("a slot's depth is what the forward says that it wrote") {
  Fixture fixture;
  fixture.allocate(Component::mamba, {Row{6}});
  const std::vector<SnapshotView> snapshots{{Tokens{3}, Row{6}}};
  SegmentView segment;
  segment.request = kRequest;
  segment.snapshots = snapshots;
  fixture.apply(ForwardAccepted{ForwardId{1}, {&segment, 1}});
  REQUIRE(fixture.ledger().row(Component::mamba, Row{6}).depth == Tokens{3});
}

}  // namespace lockstep::oracle
