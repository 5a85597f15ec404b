#include "reports/event_log.h"

#include <sstream>

#include "catch.h"
#include "core/json.h"

namespace lockstep::reports {
namespace {

Event event_of(EventBody body) {
  Event event;
  event.step = StepId{3};
  event.time = Nanoseconds{81000};
  event.rank = RankId{1};
  event.request = RequestId{2};
  event.body = std::move(body);
  return event;
}

}  // namespace

TEST_CASE("an event is one line of JSON") {
  const std::vector<Tokens> restorable{Tokens{128}, Tokens{256}};
  REQUIRE(event_line(event_of(LookedUp{Tokens{64}, restorable})) ==
          R"({"step": 3, "time_ns": 81000, "rank": 1, "request": 2, "event": "looked_up", )"
          R"("device_hit": 64, "restorable": [128, 256]})");
}

TEST_CASE("an event of no request has a null request, text is escaped") {
  Event event = event_of(RequestRefused{"7 pages \"wanted\"\n"});
  event.request = kNoRequest;
  REQUIRE(
      event_line(event) ==
      R"({"step": 3, "time_ns": 81000, "rank": 1, "request": null, "event": "request_refused", )"
      R"("reason": "7 pages \"wanted\"\n"})");
}

TEST_CASE("records are nested, bytes are hexadecimal") {
  std::vector<PageHash> hashes(1);
  hashes[0].bytes[0] = std::byte{0xab};
  const std::vector<Row> rows{Row{3}};
  const std::vector<TransferView> transfers{
      {Component::full, rows, hashes, PageRange{Pages{0}, Pages{1}}},
      {Component::swa, {}, {}, PageRange{}}};
  REQUIRE(event_line(event_of(LoadQueued{LoadId{1}, Tokens{128}, transfers})) ==
          R"({"step": 3, "time_ns": 81000, "rank": 1, "request": 2, "event": "load_queued", )"
          R"("load": 1, "boundary": 128, "transfers": [{"component": "full", )"
          R"("rows": [3], "hashes": "ab)" +
              std::string(62, '0') +
              R"(", "pages": [0, 1]}, {"component": "swa", "rows": [], )"
              R"("hashes": "", "pages": [0, 0]}]})");
}

TEST_CASE("every line of a log is one JSON document without duplicate keys, however deep") {
  const std::vector<SnapshotView> snapshots{{Tokens{128}, Row{6}}, {Tokens{256}, Row{7}}};
  const std::vector<std::byte> outputs(5000);
  std::vector<SegmentView> segments(2);
  segments[0].snapshots = snapshots;
  segments[1].outputs = outputs;
  std::ostringstream out;
  EventLog log(out);
  log.on_event(event_of(ForwardLaunched{ForwardId{1}, segments}));
  log.on_event(event_of(ForwardAccepted{ForwardId{1}, {}}));
  std::istringstream lines(out.str());
  std::string line;
  std::vector<Json> events;
  while (std::getline(lines, line)) {
    const Result<Json> json = parse_json(line, "log");
    INFO(line);
    REQUIRE(json.ok());
    events.push_back(*json);
  }
  REQUIRE(events.size() == 2);
  const auto& list = *events[0].find("segments")->as<Json::Array>();
  REQUIRE(list.size() == 2);
  REQUIRE(to_text(*list[0].find("snapshots")) ==
          R"([{"depth": 128, "slot": 6}, {"depth": 256, "slot": 7}])");
  REQUIRE(*list[1].find("outputs")->find("bytes")->as<std::int64_t>() == 5000);
  REQUIRE(to_text(*events[1].find("segments")) == "[]");
}

}  // namespace lockstep::reports
