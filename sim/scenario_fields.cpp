#include "sim/scenario_fields.h"

#include "model/model.h"

namespace lockstep::sim {
namespace {

constexpr std::int64_t kMaxRows = std::int64_t{1} << 24;

Codec<StoreSpec> store_codec() {
  return object<StoreSpec>({
      field("kind", &StoreSpec::kind, choice<std::string>({{"memory", "memory"}}), "the back end"),
      field("capacity_mib", &StoreSpec::capacity_mib, integer<std::int64_t>(0, 1 << 20),
            "room for objects in MiB; the least recently used go first"),
      field("latency_us", &StoreSpec::latency_us, number(0, 1e9), "delay of one batch in us"),
      field("gigabytes_per_s", &StoreSpec::gigabytes_per_s, number(1e-6, 1e6),
            "bandwidth in GB per second"),
      optional_field("lease_us", &StoreSpec::lease_us, number(0, 1e9),
                     "lease of a read in us; one that ends later finds nothing"),
  });
}

Codec<ScheduleSpec> schedule_codec() {
  return object<ScheduleSpec>({
      field("mode", &ScheduleSpec::mode,
            choice<ScheduleMode>({{"fifo", ScheduleMode::fifo},
                                  {"random", ScheduleMode::random},
                                  {"priority", ScheduleMode::priority},
                                  {"depth_first", ScheduleMode::depth_first}}),
            "which stream runs next"),
      field("depth", &ScheduleSpec::depth, integer<std::int64_t>(1, 64),
            "bug depth of \"priority\", bound of \"depth_first\""),
      field("jitter", &ScheduleSpec::jitter, number(0, 1),
            "largest share by which the seed lengthens an operation"),
  });
}

Codec<SpeculationStep> speculation_codec() {
  const auto count = integer<Tokens>(0, 64);
  return object<SpeculationStep>({
      field("draft", &SpeculationStep::draft, count, "tokens that the decode guesses"),
      field("accept", &SpeculationStep::accept, count,
            "how many of them are right, from the first on"),
  });
}

Codec<model::ModelSpec> preset_codec() {
  const auto decode = [](const std::string& preset, model::ModelSpec& spec) {
    spec.preset = preset;
    return std::string();
  };
  const auto encode = [](const model::ModelSpec& spec) { return spec.preset; };
  Codec<model::ModelSpec> codec =
      mapped<model::ModelSpec, std::string>(name_text(), decode, encode);
  codec.what = "the name of a preset";
  return codec;
}

Codec<model::ModelSpec> model_object_codec() {
  using model::ModelSpec;
  const auto words = array_of(name_text());
  return object<ModelSpec>({
      field("preset", &ModelSpec::preset, name_text(), "the model that is varied"),
      optional_field("checkpoint", &ModelSpec::checkpoint, name_text(),
                     "a folder with config.json and model.safetensors, instead of a preset"),
      optional_field("window", &ModelSpec::window, integer<Tokens>(1, kMaxTokens),
                     "SWA window W: token t sees t-W+1 .. t"),
      optional_field("state_chunk", &ModelSpec::state_chunk, integer<Tokens>(1, kMaxTokens),
                     "tokens between states that the recurrent layers can hand out"),
      optional_field("vocab", &ModelSpec::vocab, integer<std::int64_t>(2, 1 << 24),
                     "number of token ids"),
      optional_field("layers", &ModelSpec::layers, array_of(name_text(), 1),
                     "the mixer of each layer"),
      field("kv_scale", &ModelSpec::kv_scale, boolean(),
            "KV rows have scales beside them (refused)"),
      field("virtual_slots", &ModelSpec::virtual_slots, boolean(),
            "slots live in unified memory (refused)"),
      field("state_dtype", &ModelSpec::state_dtype, name_text(),
            "type of the recurrent state (\"int8\" is refused)"),
      field("extra_slot_state", &ModelSpec::extra_slot_state, words,
            "per-slot state outside the transfer (refused)"),
      field("contiguous_rows", &ModelSpec::contiguous_rows, boolean(),
            "each row is one range of bytes (false is refused)"),
      optional_field("swa_page", &ModelSpec::swa_page, integer<Tokens>(1, kMaxTokens),
                     "page of the SWA pool where it differs from the cache's (refused)"),
  });
}

bool check_preset(const Cursor& cursor, const std::string& preset) {
  const std::vector<std::string> known = model::preset_names();
  if (std::find(known.begin(), known.end(), preset) != known.end()) return true;
  std::string what = "the name of a preset, one of";
  for (const std::string& name : known) what += (&name == &known.front() ? " " : ", ") + name;
  const Json* given = cursor.value().find("preset");
  return given ? cursor.member("preset", *given).expected(what) : cursor.expected(what);
}

// Keys that are read and checked but are no part of the value.
Field<Scenario> schema_key() {
  const auto read = [](const Cursor& cursor, Scenario&) {
    return is_text(cursor.value()) || cursor.expected("a string");
  };
  const auto write = [](const Scenario&) { return std::optional<Json>(); };
  return {"$schema", "where the schema is, for editors", false,     read,
          write,     Json::Object{{"type", "string"}},   "a string"};
}

Field<Scenario> version_key() {
  const auto read = [](const Cursor& cursor, Scenario&) {
    const auto* version = cursor.value().as<std::int64_t>();
    return (version && *version == 1) || cursor.expected("the integer 1");
  };
  const auto write = [](const Scenario&) { return std::optional<Json>(1); };
  return {"version", "version of the format",    true,           read,
          write,     Json::Object{{"const", 1}}, "the integer 1"};
}

}  // namespace

std::vector<Field<CacheConfig>> cache_fields() {
  using Config = CacheConfig;
  const auto tokens = integer<Tokens>(1, kMaxTokens);
  const auto rows = integer<Rows>(0, kMaxRows);
  return {
      field("page", &Config::page, tokens, "tokens per page"),
      field("track_interval", &Config::track_interval, tokens,
            "tokens between the checkpoints that decoding takes"),
      field("prefill_chunk", &Config::prefill_chunk, tokens, "most prompt tokens of one forward"),
      field("full_pages", &Config::full_pages, rows, "rows of the FULL pool, one page each"),
      field("swa_pages", &Config::swa_pages, rows, "rows of the SWA pool, one page each"),
      field("mamba_slots", &Config::mamba_slots, rows, "rows of the MAMBA pool, one state each"),
      field("max_running", &Config::max_running, integer<std::int64_t>(1, 65536),
            "most requests that run at once"),
      field("ahead", &Config::ahead, integer<std::int64_t>(0, 1),
            "forwards in flight before the results of one are taken"),
      field("checkpoints", &Config::checkpoints,
            choice<CheckpointPolicy>(
                {{"chunk_end", CheckpointPolicy::chunk_end}, {"every", CheckpointPolicy::every}}),
            "at which grid points a prefill keeps a state"),
      field("publish", &Config::publish,
            choice<PublishPolicy>({{"at_commit", PublishPolicy::at_commit},
                                   {"after_load", PublishPolicy::after_load}}),
            "when a load becomes visible in the tree"),
      field("overlap", &Config::overlap,
            choice<OverlapPolicy>(
                {{"barrier", OverlapPolicy::barrier}, {"per_layer", OverlapPolicy::per_layer}}),
            "what the copy of a state waits for"),
      field("reoffload", &Config::reoffload,
            choice<ReoffloadPolicy>({{"never", ReoffloadPolicy::never},
                                     {"per_component", ReoffloadPolicy::per_component}}),
            "whether a stored node is offloaded again when it gains something"),
      field("object_order", &Config::object_order,
            choice<ObjectOrder>(
                {{"ascending", ObjectOrder::ascending}, {"descending", ObjectOrder::descending}}),
            "order of the layers in an object"),
  };
}

Codec<model::ModelSpec> model_codec() {
  Codec<model::ModelSpec> codec = either<model::ModelSpec>(
      preset_codec(), model_object_codec(), is_text, [](const model::ModelSpec&) { return false; });
  codec.read = [read = codec.read](const Cursor& cursor, model::ModelSpec& spec) {
    if (!is_text(cursor.value()) && !cursor.value().as<Json::Object>()) {
      return cursor.expected("the name of a preset or an object");
    }
    spec.source = cursor.place();
    if (!read(cursor, spec)) return false;
    if (spec.checkpoint && cursor.value().find("preset") != nullptr) {
      return cursor.fail("expected a preset or a checkpoint, found both");
    }
    return check_preset(cursor, spec.preset);
  };
  codec.write = [write = codec.write](const model::ModelSpec& spec) {
    Json json = write(spec);
    auto* members = std::get_if<Json::Object>(&json.value);
    if (spec.checkpoint && members != nullptr) {
      std::erase_if(*members, [](const JsonMember& member) { return member.key == "preset"; });
    }
    return json;
  };
  return codec;
}

Codec<Scenario> scenario_codec() {
  return object<Scenario>({
      schema_key(),
      version_key(),
      required_field("name", &Scenario::name, name_text(), "names the scenario in reports"),
      field("about", &Scenario::about, text(), "what it shows, in one line"),
      field("seed", &Scenario::seed, integer<std::uint64_t>(0),
            "seed of every random choice of the run"),
      field("slow", &Scenario::slow, boolean(), "takes seconds: left out by run --fast"),
      field("model", &Scenario::model, model_codec(), "the model: a preset, or a preset varied"),
      field("ranks", &Scenario::ranks, integer<std::int64_t>(1, 64), "tensor-parallel ranks"),
      field("cache", &Scenario::cache, object(cache_fields()), "sizes and policies of the cache"),
      field("store", &Scenario::store, store_codec(), "the external store"),
      field("schedule", &Scenario::schedule, schedule_codec(), "how the simulator orders streams"),
      field("speculation", &Scenario::speculation, array_of(speculation_codec()),
            "what the decodes of each request guess, in turn, over and over"),
      field("prompts", &Scenario::prompts, map_of(prompt_codec()), "prompts by name"),
      required_field("steps", &Scenario::steps, array_of(step_codec()), "what happens, in order"),
      field("faults", &Scenario::faults, array_of(fault_codec()), "what is made to go wrong"),
      field("defects", &Scenario::defects, array_of(name_text()),
            "planted defects that are switched on"),
      optional_field("expect", &Scenario::expect, expect_codec(),
                     "what must come out; without it, that nothing is violated"),
  });
}

}  // namespace lockstep::sim
