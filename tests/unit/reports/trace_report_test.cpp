#include "reports/trace_report.h"

#include "catch.h"

namespace lockstep::reports {
namespace {

sim::TraceRequest request_of(const std::string& name, std::int64_t input, std::size_t ids) {
  sim::TraceRequest request;
  request.name = name;
  request.input = Tokens{input};
  request.block = Tokens{512};
  request.blocks.resize(ids);
  return request;
}

sim::RequestResult result_of(std::int64_t restored, std::int64_t from_device) {
  sim::RequestResult result;
  result.outcome = "completed";
  result.restored_tokens = Tokens{restored};
  result.from_device = Tokens{from_device};
  result.from_store = Tokens{restored - from_device};
  return result;
}

}  // namespace

TEST_CASE("hits are whole blocks, counted where they came from") {
  const std::vector<sim::TraceRequest> requests{request_of("a", 1600, 4), request_of("b", 1600, 4),
                                                request_of("c", 600, 2)};
  sim::RunResult result;
  result.requests["a"] = result_of(0, 0);
  result.requests["b"] = result_of(1536, 512);  // 1 block on the device, 2 more from the store
  result.requests["c"] = result_of(511, 511);   // less than a block
  result.requests["c"].outcome = "refused";
  result.counters = {{"tokens_verified", 3000}};
  TraceSummary summary = summarize_trace(requests, result);
  summary.wall_time = std::chrono::seconds(2);
  REQUIRE(summary.requests == 3);
  REQUIRE(summary.block_references == 10);
  REQUIRE(summary.device_hits == 1);
  REQUIRE(summary.store_hits == 2);
  REQUIRE(summary.restores == 1);
  REQUIRE(summary.not_completed == 1);
  REQUIRE(summary.hit_rate() == 0.3);
  REQUIRE(summary.tokens_per_second() == 1500);

  const std::string text = trace_text(summary, result, 10);
  REQUIRE(text.find("block hits        3 (1 device, 2 store)\n") != std::string::npos);
  REQUIRE(text.find("hit rate          30.00 %\n") != std::string::npos);
  REQUIRE(text.find("requests          3 (1 not completed)\n") != std::string::npos);
  const Json json = trace_json("t.jsonl", summary, requests, result);
  REQUIRE(to_text(*json.find("figures")->find("hit_rate")) == "0.3");
  REQUIRE(json.find("requests")->as<Json::Array>()->size() == 3);
  REQUIRE(*json.find("cache")->find("page")->as<std::int64_t>() == 128);
}

TEST_CASE("nothing is divided by zero") {
  const TraceSummary summary;
  REQUIRE(summary.hit_rate() == 0);
  REQUIRE(summary.tokens_per_second() == 0);
}

}  // namespace lockstep::reports
