// Field tables of faults.
#include "sim/scenario_fields.h"

namespace lockstep::sim {
namespace {

constexpr std::int64_t kMaxPage = std::int64_t{1} << 24;

struct ShrinkKeys {
  Component pool = Component::full;
  std::int64_t to = 0;
};

// The forms of "do" that have an argument; exactly one key.
struct ActionKeys {
  std::optional<std::int64_t> short_read;
  std::optional<std::int64_t> corrupt_bit;
  std::optional<std::int64_t> delay_us;
  std::optional<std::int64_t> late_us;
  std::optional<ShrinkKeys> shrink;
  std::optional<std::string> cancel;
  std::optional<std::string> retract;
  std::optional<RestartStep> restart;
};

struct Action {
  FaultAction action;
  std::optional<RestartStep> restart;
};

const std::vector<std::pair<std::string, std::optional<std::int64_t> ActionKeys::*>>&
number_actions() {
  static const std::vector<std::pair<std::string, std::optional<std::int64_t> ActionKeys::*>> all{
      {"short", &ActionKeys::short_read},
      {"corrupt_bit", &ActionKeys::corrupt_bit},
      {"delay_us", &ActionKeys::delay_us},
      {"late_us", &ActionKeys::late_us}};
  return all;
}

std::string decode_action(const ActionKeys& keys, Action& action) {
  int found = 0;
  FaultAction& result = action.action;
  for (const auto& [kind, member] : number_actions()) {
    if (!(keys.*member)) continue;
    result.kind = kind;
    result.number = *(keys.*member);
    ++found;
  }
  if (keys.shrink) {
    result.kind = "shrink";
    result.pool = keys.shrink->pool;
    result.number = keys.shrink->to;
    ++found;
  }
  for (const auto& [kind, request] :
       {std::pair("cancel", &keys.cancel), std::pair("retract", &keys.retract)}) {
    if (!*request) continue;
    result.kind = kind;
    result.request = **request;
    ++found;
  }
  if (keys.restart) {
    result.kind = "restart";
    action.restart = keys.restart;
    ++found;
  }
  return found == 1 ? "" : "an object with exactly one key";
}

ActionKeys encode_action(const Action& action) {
  ActionKeys keys;
  const FaultAction& from = action.action;
  for (const auto& [kind, member] : number_actions()) {
    if (from.kind == kind) keys.*member = from.number;
  }
  if (from.kind == "shrink") keys.shrink = ShrinkKeys{from.pool, from.number};
  if (from.kind == "cancel") keys.cancel = from.request;
  if (from.kind == "retract") keys.retract = from.request;
  if (from.kind == "restart") keys.restart = action.restart;
  return keys;
}

Codec<Action> action_codec() {
  std::vector<std::pair<std::string, std::string>> words;
  for (const char* word : {"fail", "stale", "refuse", "evict", "flush", "reorder"}) {
    words.emplace_back(word, word);
  }
  const auto bare = mapped<Action, std::string>(
      choice<std::string>(words),
      [](const std::string& word, Action& action) {
        action.action.kind = word;
        return std::string();
      },
      [](const Action& action) { return action.action.kind; });
  const auto amount = integer<std::int64_t>(0);
  const auto shrink = object<ShrinkKeys>({
      required_field("pool", &ShrinkKeys::pool, component_codec(), "the pool"),
      required_field("to", &ShrinkKeys::to, amount, "rows that it keeps"),
  });
  const auto keys = object<ActionKeys>({
      optional_field("short", &ActionKeys::short_read, amount, "delivers only that many bytes"),
      optional_field("corrupt_bit", &ActionKeys::corrupt_bit, amount,
                     "flips that bit of the bytes"),
      optional_field("delay_us", &ActionKeys::delay_us, amount, "completes that much later, in us"),
      optional_field("late_us", &ActionKeys::late_us, amount,
                     "drops the completion and delivers it that much later, in us"),
      optional_field("shrink", &ActionKeys::shrink, shrink, "makes a pool smaller"),
      optional_field("cancel", &ActionKeys::cancel, name_text(), "cancels a request"),
      optional_field("retract", &ActionKeys::retract, name_text(), "retracts a request"),
      optional_field("restart", &ActionKeys::restart, restart_codec(), "restarts engine or store"),
  });
  return either<Action>(bare, mapped<Action, ActionKeys>(keys, decode_action, encode_action),
                        is_text, [](const Action& action) {
                          const std::string& kind = action.action.kind;
                          return kind == "fail" || kind == "stale" || kind == "refuse" ||
                                 kind == "evict" || kind == "flush" || kind == "reorder";
                        });
}

// A number, or "all": no number.
Codec<std::optional<std::int64_t>> nth_codec() {
  using Nth = std::optional<std::int64_t>;
  const auto all = mapped<Nth, bool>(
      choice<bool>({{"all", true}}),
      [](const bool&, Nth& nth) {
        nth.reset();
        return std::string();
      },
      [](const Nth&) { return true; });
  const auto one = mapped<Nth, std::int64_t>(
      integer<std::int64_t>(1),
      [](const std::int64_t& number, Nth& nth) {
        nth = number;
        return std::string();
      },
      [](const Nth& nth) { return *nth; });
  return either<Nth>(all, one, is_text, [](const Nth& nth) { return !nth; });
}

// "do" fills two members of the fault.
Field<FaultSpec> action_field() {
  const Codec<Action> codec = action_codec();
  const auto read = [codec](const Cursor& cursor, FaultSpec& fault) {
    Action action;
    if (!codec.read(cursor, action)) return false;
    fault.action = action.action;
    fault.restart = action.restart;
    return true;
  };
  const auto write = [codec](const FaultSpec& fault) {
    return std::optional<Json>(codec.write({fault.action, fault.restart}));
  };
  return {"do", "what happens then", true, read, write, codec.schema, codec.what};
}

}  // namespace

Codec<FaultSpec> fault_codec() {
  std::vector<std::pair<std::string, FaultPhase>> phases{
      {"match", FaultPhase::match},     {"lookup", FaultPhase::lookup},
      {"load", FaultPhase::load},       {"commit", FaultPhase::commit},
      {"offload", FaultPhase::offload}, {"cow", FaultPhase::cow},
      {"forward", FaultPhase::forward}, {"evict", FaultPhase::evict},
      {"alloc", FaultPhase::alloc},     {"vote", FaultPhase::vote},
      {"event", FaultPhase::event}};
  return object<FaultSpec>({
      required_field("on", &FaultSpec::on, choice<FaultPhase>(std::move(phases)),
                     "the phase; \"event\": after the nth observer event"),
      optional_field("component", &FaultSpec::component, component_codec(),
                     "only for this component"),
      optional_field("rank", &FaultSpec::rank, integer<RankId>(0, 63), "only on this rank"),
      optional_field("request", &FaultSpec::request, name_text(), "only for this request"),
      optional_field("layer", &FaultSpec::layer, integer<LayerId>(0, 1023), "only at this layer"),
      optional_field("page", &FaultSpec::page, integer<Pages>(0, kMaxPage),
                     "only for this page of the sequence"),
      field("nth", &FaultSpec::nth, nth_codec(), "which matching occurrence, from 1, or \"all\""),
      action_field(),
  });
}

}  // namespace lockstep::sim
