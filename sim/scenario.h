// A scenario, version 1, as a value. Reading and writing JSON is
// sim/scenario_reader.h's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/cache_config.h"
#include "core/component.h"
#include "core/ids.h"
#include "model/spec.h"

namespace lockstep::sim {

struct StoreSpec {
  std::string kind = "memory";
  std::int64_t capacity_mib = 256;
  double latency_us = 50;
  double gigabytes_per_s = 45;
  std::optional<double> lease_us = {};  // how long a read may take; none: as long as it likes
  bool operator==(const StoreSpec&) const = default;
};

// What a request's next decode guesses: `draft` tokens, of which the first `accept` are right and
// the one behind them is wrong.
struct SpeculationStep {
  Tokens draft;
  Tokens accept;
  bool operator==(const SpeculationStep&) const = default;
};

enum class ScheduleMode { fifo, random, priority, depth_first };
struct ScheduleSpec {
  ScheduleMode mode = ScheduleMode::fifo;
  std::int64_t depth = 2;
  double jitter = 0.2;
  bool operator==(const ScheduleSpec&) const = default;
};

// {"random": n, "seed": s}: token i = 1 + (i-th output of splitmix64(seed)) mod (vocab - 1).
struct RandomTokens {
  Tokens count;
  std::uint64_t seed = 0;
  bool operator==(const RandomTokens&) const = default;
};
struct PromptSpec {
  // Exactly one of these starts the prompt ...
  std::optional<RandomTokens> random;
  std::optional<std::vector<TokenId>> tokens;
  std::optional<std::string> from;       // another prompt
  std::optional<std::string> output_of;  // a request: its prompt plus all tokens that it generated
  // ... of which the first `take` tokens are kept, and these follow.
  std::optional<Tokens> take;
  std::vector<RandomTokens> then;
  bool operator==(const PromptSpec&) const = default;
};

enum class Point { matched, looked_up, loaded, committed, landed, copied, first_token, finished };

struct SubmitStep {
  std::string request;
  std::string prompt;
  Tokens decode;
  std::optional<std::string> extra_key;
  std::optional<std::string> cache_salt;
  bool operator==(const SubmitStep&) const = default;
};
struct RunStep {
  bool idle = false;
  bool drain = false;  // no fault fires any more, nobody is held any more; then as idle
  std::optional<std::int64_t> steps;
  std::optional<std::pair<std::string, Point>> until;  // request, point
  bool operator==(const RunStep&) const = default;
};
struct FlushStep {  // the device's tree
  bool operator==(const FlushStep&) const = default;
};
struct HoldStep {
  std::string request;
  Point at = Point::looked_up;
  bool operator==(const HoldStep&) const = default;
};
struct ReleaseStep {
  std::string request;
  bool operator==(const ReleaseStep&) const = default;
};
// {"evict": {"from": "device"|"store", "component": c, "count": n | "prompt": p, "at": tokens,
// "rank": r}}
struct EvictStep {
  bool from_store = false;
  Component component = Component::full;
  std::optional<RankId> rank;
  std::optional<std::int64_t> count;
  std::optional<std::string> prompt;
  std::optional<Tokens> at;
  bool operator==(const EvictStep&) const = default;
};
struct ForkStep {
  std::string request;  // of which the first `at` tokens of prompt + output are taken
  std::string as;
  Tokens at;
  std::vector<RandomTokens> then;
  Tokens decode;
  std::optional<std::string> extra_key;
  std::optional<std::string> cache_salt;
  bool operator==(const ForkStep&) const = default;
};
struct CancelStep {
  std::string request;
  bool operator==(const CancelStep&) const = default;
};
struct RetractStep {
  std::string request;
  bool operator==(const RetractStep&) const = default;
};
struct RestartStep {
  bool engine = false;
  std::optional<model::ModelSpec> model;  // a new model for the engine
  std::optional<CacheConfig> cache;       // the complete new cache configuration
  bool store = false;
  bool keep = true;  // the store's data
  bool operator==(const RestartStep&) const = default;
};
// {"pick": k, "of": kind}: move k mod n of the n moves of that kind that are valid at that moment
// (sim/moves.h). So other steps may be deleted and the scenario stays valid. No move: nothing
// happens.
enum class MoveKind { cancel, retract, hold, release, fork };
struct PickStep {
  std::uint64_t number = 0;
  std::optional<MoveKind> of;  // none: of any kind
  bool operator==(const PickStep&) const = default;
};
using Step = std::variant<SubmitStep, RunStep, FlushStep, HoldStep, ReleaseStep, EvictStep,
                          ForkStep, CancelStep, RetractStep, RestartStep, PickStep>;

enum class FaultPhase {
  match,
  lookup,
  load,
  commit,
  offload,
  cow,
  forward,
  evict,
  alloc,
  vote,
  event
};
struct FaultAction {
  // Exactly one: a bare word, or a word with an argument.
  std::string kind;  // "fail", "short", "corrupt_bit", "delay_us", "late_us", "stale", "refuse",
                     // "evict", "flush", ...
  std::int64_t number = 0;
  std::string request;               // cancel, retract
  Component pool = Component::full;  // shrink
  bool operator==(const FaultAction&) const = default;
};
struct FaultSpec {
  FaultPhase on = FaultPhase::load;
  std::optional<Component> component;
  std::optional<RankId> rank;
  std::optional<std::string> request;
  std::optional<LayerId> layer;
  std::optional<Pages> page;
  std::optional<std::int64_t> nth = 1;  // none: every matching occurrence ("all")
  FaultAction action;
  std::optional<RestartStep> restart;  // {"restart": ...}
  bool operator==(const FaultSpec&) const = default;
};

// A number means equal, {"min", "max"} a range; text and booleans mean equal; null means null.
struct NumberRange {
  std::optional<double> min;
  std::optional<double> max;
  bool operator==(const NumberRange&) const = default;
};
using ExpectedValue = std::variant<std::nullptr_t, bool, std::string, NumberRange>;
using ExpectedFields =
    std::map<std::string, ExpectedValue>;  // nested fields by path: "loaded_rows.full"

// An event name with fields that must be equal: numbers, text, whole lists of numbers.
using ExpectedEventValue = std::variant<std::int64_t, std::string, std::vector<std::int64_t>>;
struct ExpectedEvent {
  std::string event;
  std::optional<std::string> request;
  std::map<std::string, ExpectedEventValue> fields;
  bool operator==(const ExpectedEvent&) const = default;
};
struct ExpectSpec {
  std::optional<bool> pass;  // "verdict"
  std::map<std::string, ExpectedFields> requests;
  std::optional<std::vector<std::string>> violations;           // the exact set of names
  std::optional<std::vector<std::string>> violations_at_least;  // a subset
  ExpectedFields counters;
  std::vector<ExpectedEvent> events;  // a subsequence
  bool operator==(const ExpectSpec&) const = default;
};

struct Scenario {
  std::string name;
  std::string about;
  std::uint64_t seed = 1;
  bool slow = false;
  model::ModelSpec model;
  std::int64_t ranks = 1;
  CacheConfig cache;
  StoreSpec store;
  ScheduleSpec schedule;
  // Speculative decoding: taken in turn by the decodes of each request, over and over; empty: none.
  std::vector<SpeculationStep> speculation;
  std::map<std::string, PromptSpec> prompts;
  std::vector<Step> steps;
  std::vector<FaultSpec> faults;
  std::vector<std::string> defects;
  std::optional<ExpectSpec> expect;
  bool operator==(const Scenario&) const = default;
};

}  // namespace lockstep::sim
