// K1: ranks that do the same are passed, and each thing in which one may differ is reported.
#include "catch.h"
#include "story.h"

namespace lockstep::oracle::test {

namespace {

// What the judge finds if the events of one type are changed, or dropped, on rank 1 only.
template <class Body>
std::set<std::string> found_on_one_rank(std::function<bool(Body&)> alter) {
  Story story(
      [=](Event& event, Story&) {
        auto* body = std::get_if<Body>(&event.body);
        return body == nullptr || event.rank == RankId{0} || alter(*body);
      },
      "fingerprint", 2);
  story.play();
  return story.found();
}

}  // namespace

TEST_CASE("K1: two ranks that do the same are passed") {
  Story story({}, "fingerprint", 2);
  story.play();
  INFO(story.report());
  REQUIRE(story.found().empty());
}

TEST_CASE("K1: trees hold the same components of the same contents") {
  // A tombstone where the other rank has an SWA row; the window without it is R2's matter, too.
  REQUIRE(found_on_one_rank<Inserted>([](Inserted& inserted) {
            if (inserted.cause == InsertCause::load) return true;
            inserted.swa_adopted = {};
            inserted.swa_adopted_rows = {};
            return true;
          }).contains("K1"));
  // A state that only one rank lost, at quiescence.
  Story story(
      [](Event& event, Story& s) {
        if (event.rank == RankId{0} || !std::holds_alternative<LoadFinished>(event.body))
          return true;
        const auto& [id, node] = *s.nodes().rbegin();
        s.emit_on(1, kNoRequest,
                  Evicted{id, Component::mamba, {}, {&node.state, 1}, EvictionCause::roll_back});
        return true;
      },
      "fingerprint", 2);
  story.play();
  REQUIRE(story.found().contains("K1"));
}

TEST_CASE("K1: trees are cut into nodes at the same places") {
  Story story({}, "fingerprint", 2);
  story.step();
  story.submit(RequestId{0}, tokens(1, 9), Tokens{1});
  story.match(RequestId{0}, Tokens{0}, {}, Tokens{0});
  story.commit_empty(RequestId{0});
  story.step();
  story.forward(RequestId{0}, Tokens{9});
  story.insert(RequestId{0}, Tokens{8});
  story.step();
  REQUIRE(story.found().empty());
  const NodeId node = story.nodes().rbegin()->first;
  story.emit_untampered(kNoRequest, NodeSplit{NodeId{90}, node, Pages{1}});  // on rank 0 only
  REQUIRE(story.found().empty());
  story.step();
  REQUIRE(story.found() == std::set<std::string>{"K1"});
}

TEST_CASE("K1: as many rows are free") {
  REQUIRE(found_on_one_rank<RowsFreed>([](RowsFreed& freed) {
            return freed.component != Component::swa;
          }).contains("K1"));
}

TEST_CASE("K1: requests resume at the same boundary and have fed as much") {
  const auto with = [](std::function<void(Committed&)> alter) {
    return found_on_one_rank<Committed>([=](Committed& committed) {
      if (committed.boundary > Tokens{0}) alter(committed);
      return true;
    });
  };
  REQUIRE(with([](Committed& c) { c.boundary = Tokens{4}; }).contains("K1"));
  REQUIRE(with([](Committed& c) { c.device_hit = Tokens{4}; }).contains("K1"));
  REQUIRE(found_on_one_rank<Matched>([](Matched& matched) {
            matched.device_hit = Tokens{4};
            return true;
          }).contains("K1"));
  REQUIRE(
      found_on_one_rank<ForwardAccepted>([](ForwardAccepted&) { return false; }).contains("K1"));
}

TEST_CASE("K1: loads and offloads have the same outcomes") {
  REQUIRE(found_on_one_rank<LoadFinished>([](LoadFinished& finished) {
            finished.good = false;
            return true;
          }) == std::set<std::string>{"K1"});
  REQUIRE(found_on_one_rank<OffloadFinished>([](OffloadFinished& finished) {
            finished.good = false;
            return true;
          }) == std::set<std::string>{"K1"});
  // Not settled at all on one rank.
  REQUIRE(
      found_on_one_rank<OffloadFinished>([](OffloadFinished&) { return false; }).contains("K1"));
}

TEST_CASE("K1: ranks are compared between steps, not within one") {
  Story story({}, "fingerprint", 2);
  story.step();
  const Row row{1};
  story.emit_untampered(RequestId{0}, RowsAllocated{Component::full, Purpose::forward, {&row, 1}});
  REQUIRE(story.found().empty());
  story.step();
  REQUIRE(story.found() == std::set<std::string>{"K1"});
}

}  // namespace lockstep::oracle::test
