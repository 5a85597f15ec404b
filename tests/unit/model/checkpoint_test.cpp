// Checkpoints: what is refused, and by what name. tests/unit/oracle/golden_test.cpp shows that what
// is read is right.
#include "model/checkpoint.h"

#include "catch.h"
#include "core/json.h"
#include "model/model.h"

namespace lockstep::model {
namespace {

std::string file_of(const std::string& family, const char* name) {
  const std::string path = LOCKSTEP_SOURCE_DIR "/tests/golden/" + family + "/" + name;
  return std::move(read_text_file(path, kMaxCheckpointBytes)).value();
}

// The golden checkpoint of a family with one text of its configuration replaced.
std::string error_with(const std::string& family, const std::string& from, const std::string& to) {
  std::string config = file_of(family, "config.json");
  const std::size_t at = config.find(from);
  REQUIRE(at != std::string::npos);
  config.replace(at, from.size(), to);
  const Result<Checkpoint> read =
      parse_checkpoint(config, file_of(family, "model.safetensors"), "tiny");
  return read ? "no error" : read.error().message;
}

void require_refused(const std::string& family, const std::string& from, const std::string& to,
                     const std::string& part) {
  const std::string error = error_with(family, from, to);
  INFO(error);
  REQUIRE(error.find(part) != std::string::npos);
}

TEST_CASE("checkpoint: a family, and a tower, that are not supported are named") {
  require_refused("inkling", "inkling_text", "gpt2",
                  "/model_type: found \"gpt2\", expected one of");
  require_refused("inkling", "\"model_type\": \"inkling_text\"",
                  R"("model_type": "inkling_mm_model", "vision_config": {})",
                  "/vision_config: towers are not supported");
  require_refused("inkling", "\"model_type\": \"inkling_text\",", "", "/model_type: found nothing");
}

TEST_CASE("checkpoint: keys that nobody knows, and values that change the arithmetic") {
  require_refused("inkling", "\"d_rel\"", "\"colour\": 1, \"d_rel\"", "/colour: unknown key");
  require_refused("inkling", "\"silu\"", "\"gelu\"", "/hidden_act: found \"gelu\"");
  require_refused("inkling", "\"num_mtp_layers\": null", "\"num_mtp_layers\": 2",
                  "/num_mtp_layers: found 2");
  require_refused("inkling", "\"hybrid\"", "\"mamba\"", "/layer_types: \"mamba\" is not supported");
  require_refused("inkling", "\"num_hidden_layers\": 4", "\"num_hidden_layers\": 5",
                  "/layer_types: 4 layers, but num_hidden_layers is 5");
  require_refused("inkling-moe", "\"shared_expert_sink\": true", "\"shared_expert_sink\": false",
                  "/shared_expert_sink: found false");
}

TEST_CASE("checkpoint: what each family can say and this decoder cannot do") {
  require_refused("lfm2", "\"conv_bias\": false", "\"conv_bias\": true", "/conv_bias: found true");
  require_refused("lfm2", "\"rope_type\": \"default\"", "\"rope_type\": \"yarn\"",
                  "/rope_parameters: /rope_type: found \"yarn\"");
  require_refused("qwen3-next", "\"attention_bias\": false", "\"attention_bias\": true",
                  "/attention_bias: found true");
  require_refused("qwen3-next", "\"norm_topk_prob\": true", "\"norm_topk_prob\": false",
                  "/norm_topk_prob: found false");
  require_refused("qwen3-next", "\"partial_rotary_factor\": 0.25",
                  "\"partial_rotary_factor\": 0.375", "rotary_dim 6, expected 0 or a power of two");
  require_refused("kimi-linear", "\"v_head_dim\": 16", "\"v_head_dim\": 8",
                  "/v_head_dim: only values as long as keys");
  require_refused("kimi-linear", "\"num_expert_group\": 1", "\"num_expert_group\": 2",
                  "/num_expert_group: found 2");
  require_refused("kimi-linear", "\"q_lora_rank\": null", "\"q_lora_rank\": 8",
                  "/q_lora_rank: found 8");
  require_refused("falcon-h1", "\"projectors_bias\": false", "\"projectors_bias\": true",
                  "/projectors_bias: found true");
  require_refused("falcon-h1", "\"mlp_multipliers\": [", "\"mlp_multipliers\": [1.0,",
                  "/mlp_multipliers: found an array, expected 2 numbers");
  require_refused("mamba2", "\"__float__\": \"Infinity\"", "\"__float__\": \"NaN\"",
                  "/time_step_limit");
  require_refused("mamba2", "\"num_heads\": 8", "\"num_heads\": 6", "no power of two");
  require_refused("nemotron-h", "\"mlp\"", "\"swiglu\"", "\"swiglu\" is not supported");
  require_refused("nemotron-h", "\"full_attention\"", "\"moe\"",
                  "only an MLP behind a mixer is supported");
  require_refused("nemotron-h", "\"relu2\"", "\"silu\"", "/mlp_hidden_act: found \"silu\"");
}

// `config` without the member of that key, which is a list of words.
std::string without_list(std::string config, const std::string& key) {
  const std::size_t start = config.find("\"" + key + "\": [");
  REQUIRE(start != std::string::npos);
  return config.erase(start, config.find("],", start) + 2 - start);
}

// Released files say some things in other words than transformers' newest version writes.
TEST_CASE("checkpoint: older spellings of the layers mean the same model") {
  struct Spelling {
    const char* family;
    std::vector<const char*> removed;
    std::string added;
  };
  const std::vector<Spelling> spellings = {
      {"lfm2", {"layer_types"}, R"("full_attn_idxs": [1, 3], )"},
      {"qwen3-next", {"layer_types"}, R"("full_attention_interval": 2, )"},
      {"nemotron-h", {"layers_block_type"}, R"("hybrid_override_pattern": "M-*ME", )"},
      {"kimi-linear",
       {"layer_types"},
       R"("linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "num_heads": 4,
           "head_dim": 8, "short_conv_kernel_size": 4}, )"},
  };
  for (const Spelling& spelling : spellings) {
    std::string config = file_of(spelling.family, "config.json");
    for (const char* key : spelling.removed) config = without_list(config, key);
    const std::size_t null = config.find("\"full_attn_idxs\": null,");
    if (null != std::string::npos) config.erase(null, 23);
    config.insert(config.find('{') + 1, spelling.added);
    const std::string tensors = file_of(spelling.family, "model.safetensors");
    const Result<Checkpoint> found = parse_checkpoint(config, tensors, "tiny");
    INFO(spelling.family << ": " << (found ? "" : found.error().message));
    REQUIRE(found.ok());
    const Result<Checkpoint> expected =
        parse_checkpoint(file_of(spelling.family, "config.json"), tensors, "tiny");
    REQUIRE(describe(found->config) == describe(expected->config));
  }
}

TEST_CASE("checkpoint: Mamba2 alone has no pages by which the cache could name prefixes") {
  ModelSpec spec;
  spec.checkpoint = LOCKSTEP_SOURCE_DIR "/tests/golden/mamba2";
  const auto made = make_model(spec, 1, Tokens{16});
  REQUIRE(made.error().message.find("no \"full\" layer") != std::string::npos);
}

TEST_CASE("checkpoint: sizes are compared with the tensors before anything is allocated") {
  require_refused("inkling", "\"hidden_size\": 32", "\"hidden_size\": 65536",
                  "expected BF16 [64, 65536]");
  require_refused("inkling", "\"vocab_size\": 64", "\"vocab_size\": 1073741824",
                  "expected BF16 [1073741824, 32]");
  require_refused("inkling", "\"num_attention_heads\": 4", "\"num_attention_heads\": 3",
                  "a power of two");
  require_refused("inkling", "\"rel_extent\": 24", "\"rel_extent\": 1073741824",
                  "expected BF16 [4, 1073741824]");
  require_refused("inkling", "\"hidden_size\": 32", "\"hidden_size\": -1",
                  "/hidden_size: found -1");
}

TEST_CASE("checkpoint: tensors that are missing, or that nobody asked for") {
  // A dense layer's tensors where the configuration has experts, and one layer less.
  require_refused("inkling", "\"dense\"", "\"sparse\"", "missing");
  std::string config = file_of("inkling", "config.json");
  config.replace(config.find("\"num_hidden_layers\": 4"), 22, "\"num_hidden_layers\": 3");
  for (const char* list :
       {"\"layer_types\": [\n    \"hybrid_sliding\",", "\"mlp_layer_types\": [\n    \"dense\","}) {
    const std::string text(list);
    const std::size_t start = config.find(text);
    REQUIRE(start != std::string::npos);
    config.replace(start, text.size(), text.substr(0, text.find('[') + 1));
  }
  const Result<Checkpoint> fewer =
      parse_checkpoint(config, file_of("inkling", "model.safetensors"), "tiny");
  REQUIRE_FALSE(fewer.ok());
  // Layers 0 and 1 changed their kinds, which the sizes of the profiles show.
  REQUIRE(fewer.error().message.find("rel_logits_proj.proj") != std::string::npos);
}

TEST_CASE("checkpoint: a model of one, and what a specification cannot override") {
  ModelSpec spec;
  spec.checkpoint = LOCKSTEP_SOURCE_DIR "/tests/golden/inkling";
  spec.state_chunk = Tokens{4};
  const auto made = make_model(spec, 1, Tokens{16});
  REQUIRE(made.ok());
  REQUIRE((*made)->geometry().state_chunk == Tokens{4});
  REQUIRE((*made)->geometry().window == Tokens{8});
  spec.window = Tokens{9};
  const auto window = make_model(spec, 1, Tokens{16});
  REQUIRE(window.error().message.find("/window: fixed by the weights") != std::string::npos);
  ModelSpec nowhere;
  nowhere.checkpoint = "no/such/folder";
  const auto missing = make_model(nowhere, 1, Tokens{16});
  REQUIRE(missing.error().message.find("no/such/folder/config.json: cannot be opened") !=
          std::string::npos);
}

}  // namespace
}  // namespace lockstep::model
