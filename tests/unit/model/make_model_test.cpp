#include <filesystem>
#include <fstream>

#include "catch.h"
#include "model_sandbox.h"

namespace lockstep::model {
namespace {

std::string error_of(const ModelSpec& spec) {
  const auto model = make_model(spec, 1, Tokens{4});
  return model ? "no error" : model.error().message;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("make_model: the default layers, sizes and layouts of the fingerprint model") {
  const auto model = must_make({});
  REQUIRE(model->name() == "fingerprint");
  REQUIRE(model->vocab() == 65536);
  REQUIRE(model->geometry().window == Tokens{64});
  REQUIRE(model->geometry().state_chunk == Tokens{1});
  REQUIRE((model->geometry().has_full && model->geometry().has_swa && model->geometry().has_mamba));
  REQUIRE_FALSE(model->has_logits());
  REQUIRE(model->layers().size() == 4);

  // Layers swa full rec rec: one word per token and attention layer; {state, count} and
  // {3 inputs, tag} per recurrent layer.
  REQUIRE(model->layout(Component::full, Tokens{16}, false).row_bytes == Bytes{128});
  REQUIRE(model->layout(Component::swa, Tokens{16}, false).row_bytes == Bytes{128});
  const RowLayout slot = model->layout(Component::mamba, Tokens{1}, false);
  REQUIRE(slot.parts.size() == 4);
  REQUIRE(slot.row_bytes == Bytes{96});
  REQUIRE((slot.parts[0].layer == LayerId{2} && slot.parts[0].part == Part::temporal));
  REQUIRE((slot.parts[1].layer == LayerId{2} && slot.parts[1].part == Part::conv));
  REQUIRE((slot.parts[3].layer == LayerId{3} && slot.parts[3].offset == Bytes{64}));
  const RowLayout reversed = model->layout(Component::mamba, Tokens{1}, true);
  REQUIRE((reversed.parts[0].layer == LayerId{3} && reversed.parts[0].part == Part::temporal));
  REQUIRE(reversed.row_bytes == slot.row_bytes);
}

TEST_CASE("make_model: the declared state is what the layouts hold") {
  const auto model = must_make({});
  const DeclaredState& state = model->declared_state();
  REQUIRE(state.attention_layers == std::vector<LayerId>{LayerId{0}, LayerId{1}});
  REQUIRE(state.swa_layers == std::vector<LayerId>{LayerId{0}});
  REQUIRE(state.full_layers == std::vector<LayerId>{LayerId{1}});
  REQUIRE(state.buffers.size() == 6);
}

TEST_CASE("make_model: overrides change layers, components and the fingerprint") {
  ModelSpec only_full;
  only_full.layers = {"full", "full"};
  only_full.vocab = 100;
  const auto model = must_make(only_full);
  REQUIRE((model->geometry().has_full && !model->geometry().has_swa));
  REQUIRE_FALSE(model->geometry().has_mamba);
  REQUIRE(model->vocab() == 100);
  REQUIRE(model->layout(Component::full, Tokens{2}, false).row_bytes == Bytes{32});
  REQUIRE(model->layout(Component::swa, Tokens{2}, false).parts.empty());
  REQUIRE(model->fingerprint() != must_make({})->fingerprint());

  ModelSpec window;
  window.window = Tokens{3};
  window.state_chunk = Tokens{16};
  REQUIRE(must_make(window)->geometry().window == Tokens{3});
  REQUIRE(must_make(window)->geometry().state_chunk == Tokens{16});
  REQUIRE(must_make(window)->fingerprint() != must_make({})->fingerprint());
}

TEST_CASE("make_model: errors name the property, what was found and what was expected") {
  ModelSpec spec;
  spec.preset = "gpt";
  REQUIRE(contains(error_of(spec), "unknown preset \"gpt\""));
  REQUIRE(contains(error_of(spec), "fingerprint"));
  spec = {};
  spec.layers = {"full", "fuller"};
  REQUIRE(contains(error_of(spec), "/layers/1: unknown layer \"fuller\""));
  spec = {};
  spec.layers = std::vector<std::string>{};
  REQUIRE(contains(error_of(spec), "0 layers"));
  spec.layers = {"swa"};
  REQUIRE(contains(error_of(spec), "no \"full\" layer"));
  spec = {};
  spec.window = Tokens{0};
  REQUIRE(contains(error_of(spec), "window 0, expected 1"));
  spec = {};
  spec.state_chunk = Tokens{-4};
  REQUIRE(contains(error_of(spec), "state_chunk -4"));
  spec = {};
  spec.vocab = 1;
  REQUIRE(contains(error_of(spec), "vocab 1, expected 2"));
}

TEST_CASE("make_model: properties that a row copy cannot carry are declared, not refused here") {
  ModelSpec spec;
  spec.kv_scale = true;
  spec.state_dtype = "int8";
  spec.extra_slot_state = {"ple"};
  spec.contiguous_rows = false;
  spec.virtual_slots = true;
  const auto model = must_make(spec);
  const DeclaredState& state = model->declared_state();
  REQUIRE((state.kv_scale && state.virtual_slots && !state.contiguous_rows));
  REQUIRE(state.state_dtype == "int8");
  REQUIRE(state.extra_slot_state == std::vector<std::string>{"ple"});
}

TEST_CASE("model files: what is refused, and why") {
  const auto error = [](const char* text) {
    const Result<ModelConfig> config = parse_model_config(text, "m.json");
    return config ? std::string("no error") : config.error().message;
  };
  const std::string good =
      R"({"model_type": "fingerprint", "layers": ["full"], "vocab_size": 8, "conv_kernel_size": 1)";
  REQUIRE(error((good + "}").c_str()) == "no error");
  REQUIRE(contains(error(""), "m.json: expected a JSON document, found an empty file"));
  REQUIRE(contains(error("[1]"), "expected a JSON object"));
  REQUIRE(contains(error((good + R"(, "vocab_size": 9})").c_str()),
                   "/vocab_size: expected this key once"));
  REQUIRE(contains(error((good + R"(, "colour": 1})").c_str()), "/colour: unknown key"));
  REQUIRE(contains(error((good + R"(, "sliding_window_size": "wide"})").c_str()),
                   "/sliding_window_size"));
  REQUIRE(contains(error((good + R"(, "sliding_window_size": 0})").c_str()), "found 0, expected"));
  REQUIRE(contains(error((good + R"(, "kv_scale": 1})").c_str()), "/kv_scale: found 1"));
  REQUIRE(contains(error((good + R"(, "extra_slot_state": [1]})").c_str()), "/extra_slot_state"));
  REQUIRE(contains(
      error((good + ", \"x\": " + std::string(50, '[') + std::string(50, ']') + "}").c_str()),
      "at most 32 levels of nesting"));
  REQUIRE(contains(error(R"({"layers": ["full"], "vocab_size": 8, "conv_kernel_size": 1})"),
                   "/model_type"));
}

TEST_CASE("model files: a path that ends in .json is read") {
  ModelSpec spec;
  spec.preset = "no-such-model.json";
  REQUIRE(contains(error_of(spec), "no-such-model.json: cannot read"));
  const std::string path = std::filesystem::temp_directory_path() / "lockstep-make-model-test.json";
  std::ofstream(path) << R"({"model_type": "fingerprint", "layers": ["full", "rec"],
                            "vocab_size": 8, "conv_kernel_size": 2})";
  spec.preset = path;
  REQUIRE(error_of(spec) == "no error");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lockstep::model
