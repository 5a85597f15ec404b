// Field tables of steps.
#include "sim/scenario_fields.h"

namespace lockstep::sim {
namespace {

const std::vector<std::pair<std::string, Point>>& points() {
  static const std::vector<std::pair<std::string, Point>> all{
      {"matched", Point::matched},         {"looked_up", Point::looked_up},
      {"loaded", Point::loaded},           {"committed", Point::committed},
      {"landed", Point::landed},           {"copied", Point::copied},
      {"first_token", Point::first_token}, {"finished", Point::finished}};
  return all;
}

// ---------------------------------------------------------------- run

// "r2:committed". The point is what follows the last colon.
std::string decode_until(const std::string& text, std::pair<std::string, Point>& until) {
  const std::size_t colon = text.rfind(':');
  std::string wanted = "\"request:point\", the point one of";
  for (const auto& [word, point] : points()) {
    if (colon != std::string::npos && colon > 0 && text.substr(colon + 1) == word) {
      until = {text.substr(0, colon), point};
      return {};
    }
    wanted += (point == points().front().second ? " " : ", ") + word;
  }
  return wanted;
}

std::string encode_until(const std::pair<std::string, Point>& until) {
  for (const auto& [word, point] : points()) {
    if (point == until.second) return until.first + ":" + word;
  }
  return {};
}

Codec<RunStep> run_codec() {
  const auto word = mapped<RunStep, bool>(
      choice<bool>({{"idle", false}, {"drain", true}}),
      [](const bool& drain, RunStep& run) {
        run.idle = !drain;
        run.drain = drain;
        return std::string();
      },
      [](const RunStep& run) { return run.drain; });
  const auto until =
      mapped<std::pair<std::string, Point>, std::string>(name_text(), decode_until, encode_until);
  const auto limits = object<RunStep>({
      optional_field("steps", &RunStep::steps, integer<std::int64_t>(1), "that many engine steps"),
      optional_field("until", &RunStep::until, until, "until a request has reached a point"),
  });
  const auto bounded = mapped<RunStep, RunStep>(
      limits,
      [](const RunStep& read, RunStep& run) {
        run = read;
        return std::string(read.steps.has_value() != read.until.has_value()
                               ? ""
                               : "exactly one of the keys \"steps\", \"until\"");
      },
      [](const RunStep& run) { return run; });
  const auto either_form = either<RunStep>(
      word, bounded, is_text, [](const RunStep& run) { return run.idle || run.drain; });
  return object<RunStep>(
      {whole_field("run", either_form,
                   "lets time pass; \"idle\": until no event is left; \"drain\": faults stop, "
                   "who is held is released, then as \"idle\"")});
}

// ---------------------------------------------------------------- requests

Codec<SubmitStep> submit_codec() {
  return object<SubmitStep>({
      required_field("submit", &SubmitStep::request, name_text(), "names the new request"),
      required_field("prompt", &SubmitStep::prompt, name_text(), "the name of its prompt"),
      required_field("decode", &SubmitStep::decode, integer<Tokens>(1, kMaxTokens),
                     "tokens that it generates"),
      optional_field("extra_key", &SubmitStep::extra_key, text(),
                     "adapter or media: another namespace and another arithmetic"),
      optional_field("cache_salt", &SubmitStep::cache_salt, text(), "tenant: another namespace"),
  });
}

Codec<ForkStep> fork_codec() {
  return object<ForkStep>({
      required_field("fork", &ForkStep::request, name_text(), "the request that is continued"),
      required_field("as", &ForkStep::as, name_text(), "names the new request"),
      required_field("at", &ForkStep::at, integer<Tokens>(1, kMaxTokens),
                     "tokens kept of its prompt and output"),
      field("then", &ForkStep::then, then_codec(), "random tokens that follow"),
      required_field("decode", &ForkStep::decode, integer<Tokens>(1, kMaxTokens),
                     "tokens that the new request generates"),
      optional_field("extra_key", &ForkStep::extra_key, text(),
                     "adapter or media: another namespace and another arithmetic"),
      optional_field("cache_salt", &ForkStep::cache_salt, text(), "tenant: another namespace"),
  });
}

Codec<HoldStep> hold_codec() {
  return object<HoldStep>({
      required_field("hold", &HoldStep::request, name_text(), "the request that stops"),
      required_field("at", &HoldStep::at, choice<Point>(points()), "where it stops"),
  });
}

template <class T>
Codec<T> request_step(const std::string& key, const std::string& meaning) {
  return object<T>({required_field(key, &T::request, name_text(), meaning)});
}

Codec<PickStep> pick_codec() {
  return object<PickStep>({
      required_field("pick", &PickStep::number, integer<std::uint64_t>(0),
                     "k: move k mod n of the n moves that are valid then; none: nothing"),
      optional_field("of", &PickStep::of,
                     choice<MoveKind>({{"cancel", MoveKind::cancel},
                                       {"retract", MoveKind::retract},
                                       {"hold", MoveKind::hold},
                                       {"release", MoveKind::release},
                                       {"fork", MoveKind::fork}}),
                     "only moves of this kind"),
  });
}

// ---------------------------------------------------------------- cache and store

Codec<FlushStep> flush_codec() {
  const auto device = mapped<FlushStep, bool>(
      choice<bool>({{"device", true}}), [](const bool&, FlushStep&) { return std::string(); },
      [](const FlushStep&) { return true; });
  return object<FlushStep>({whole_field("flush", device, "empties the tree of the device")});
}

std::string decode_evict(const EvictStep& read, EvictStep& evict) {
  evict = read;
  if (read.prompt.has_value() != read.at.has_value())
    return "the keys \"prompt\" and \"at\" together";
  if (read.count.has_value() == read.prompt.has_value()) {
    return "either the key \"count\" or the keys \"prompt\" and \"at\"";
  }
  return {};
}

Codec<EvictStep> evict_codec() {
  const auto fields = object<EvictStep>({
      required_field("from", &EvictStep::from_store,
                     choice<bool>({{"device", false}, {"store", true}}), "where"),
      required_field("component", &EvictStep::component, component_codec(), "what"),
      optional_field("rank", &EvictStep::rank, integer<RankId>(0, 63), "on one rank only"),
      optional_field("count", &EvictStep::count, integer<std::int64_t>(1),
                     "that many least recently used units"),
      optional_field("prompt", &EvictStep::prompt, name_text(), "the page or state of this prompt"),
      optional_field("at", &EvictStep::at, integer<Tokens>(1, kMaxTokens),
                     "that ends at this token"),
  });
  const auto checked = mapped<EvictStep, EvictStep>(fields, decode_evict,
                                                    [](const EvictStep& evict) { return evict; });
  return object<EvictStep>({whole_field("evict", checked, "makes cached state go")});
}

struct EngineKeys {
  std::optional<model::ModelSpec> model;
  std::optional<CacheConfig> cache;
};
struct StoreKeys {
  bool keep = true;
};
struct RestartKeys {
  std::optional<EngineKeys> engine;
  std::optional<StoreKeys> store;
};

std::string decode_restart(const RestartKeys& keys, RestartStep& restart) {
  if (!keys.engine && !keys.store) return "at least one of the keys \"engine\", \"store\"";
  restart.engine = keys.engine.has_value();
  if (keys.engine) {
    restart.model = keys.engine->model;
    restart.cache = keys.engine->cache;
  }
  restart.store = keys.store.has_value();
  if (keys.store) restart.keep = keys.store->keep;
  return {};
}

RestartKeys encode_restart(const RestartStep& restart) {
  RestartKeys keys;
  if (restart.engine) keys.engine = EngineKeys{restart.model, restart.cache};
  if (restart.store) keys.store = StoreKeys{restart.keep};
  return keys;
}

}  // namespace

Codec<Component> component_codec() {
  return choice<Component>(
      {{"full", Component::full}, {"swa", Component::swa}, {"mamba", Component::mamba}});
}

Codec<RestartStep> restart_codec() {
  const auto engine = object<EngineKeys>({
      optional_field("model", &EngineKeys::model, model_codec(), "a new model"),
      optional_field("cache", &EngineKeys::cache, object(cache_fields()),
                     "what changes in the scenario's cache"),
  });
  const auto store = object<StoreKeys>({
      field("keep", &StoreKeys::keep, boolean(), "whether the objects stay"),
  });
  const auto keys = object<RestartKeys>({
      optional_field("engine", &RestartKeys::engine, engine, "device and tree are new"),
      optional_field("store", &RestartKeys::store, store, "the store goes and comes back"),
  });
  return mapped<RestartStep, RestartKeys>(keys, decode_restart, encode_restart);
}

Codec<Step> step_codec() {
  const auto restart =
      object<RestartStep>({whole_field("restart", restart_codec(), "restarts engine or store")});
  return forms<Step>({
      form<Step>("submit", submit_codec()),
      form<Step>("run", run_codec()),
      form<Step>("flush", flush_codec()),
      form<Step>("hold", hold_codec()),
      form<Step>("release", request_step<ReleaseStep>("release", "lets a held request go on")),
      form<Step>("evict", evict_codec()),
      form<Step>("fork", fork_codec()),
      form<Step>("cancel", request_step<CancelStep>("cancel", "cancels a request")),
      form<Step>("retract",
                 request_step<RetractStep>("retract", "makes a running request wait again")),
      form<Step>("restart", restart),
      form<Step>("pick", pick_codec()),
  });
}

}  // namespace lockstep::sim
