#include "model/checkpoint.h"

#include <filesystem>
#include <utility>

#include "core/hash.h"
#include "core/json.h"
#include "model/families/families.h"
#include "model/json_fields.h"
#include "model/tensor_reader.h"

namespace lockstep::model {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

struct Family {
  std::string_view model_type;
  ReadFamily read;
};
constexpr Family kFamilies[] = {
    {"falcon_h1", read_falcon_h1},     {"inkling_text", read_inkling},
    {"kimi_linear", read_kimi_linear}, {"lfm2", read_lfm2},
    {"mamba2", read_mamba2},           {"nemotron_h", read_nemotron_h},
    {"qwen3_next", read_qwen3_next},
};

Result<Family> family_of(const Json& config, const std::string& source) {
  const Json* type = config.find("model_type");
  const auto* name = type != nullptr ? type->as<std::string>() : nullptr;
  std::string known;
  for (const Family& family : kFamilies) {
    if (name != nullptr && family.model_type == *name) return family;
    known += (known.empty() ? "\"" : ", \"") + std::string(family.model_type) + "\"";
  }
  for (const char* tower : {"vision_config", "audio_config"}) {
    if (config.find(tower) == nullptr) continue;
    return Error{source + ": /" + tower + ": towers are not supported, only language models"};
  }
  return Error{source + ": /model_type: found " + (type != nullptr ? describe(*type) : "nothing") +
               ", expected one of " + known};
}

std::string digest(std::string_view config, std::string_view tensors) {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  return std::to_string(xxh3(bytes(config))) + "," + std::to_string(xxh3(bytes(tensors)));
}

}  // namespace

Result<Checkpoint> parse_checkpoint(std::string_view config, std::string tensors,
                                    const std::string& name) {
  const std::string source = name + "/config.json";
  const Result<Json> json = parse_json(config, source);
  if (!json) return json.error();
  if (json->as<Json::Object>() == nullptr) return Error{source + ": expected a JSON object"};
  const Result<Family> family = family_of(*json, source);
  if (!family) return family.error();

  Checkpoint checkpoint;
  checkpoint.config.name = name;
  checkpoint.weights_name = digest(config, tensors);
  const Result<TensorFile> file =
      TensorFile::parse(std::move(tensors), name + "/model.safetensors");
  if (!file) return file.error();
  JsonFields fields(*json, source);
  TensorReader reader(*file);
  const Result<void> good = family->read(fields, reader, checkpoint);
  if (!good) return good.error();
  return checkpoint;
}

Result<Checkpoint> read_checkpoint(const std::string& folder) {
  const Result<std::string> config = read_text_file(folder + "/config.json", kMaxConfigBytes);
  if (!config) return config.error();
  if (std::filesystem::exists(folder + "/model.safetensors.index.json")) {
    return Error{folder +
                 "/model.safetensors.index.json: weights in several files are not supported"};
  }
  Result<std::string> tensors = read_text_file(folder + "/model.safetensors", kMaxCheckpointBytes);
  if (!tensors) return tensors.error();
  return parse_checkpoint(*config, std::move(*tensors), folder);
}

}  // namespace lockstep::model
