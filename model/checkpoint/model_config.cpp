#include "model/checkpoint/model_config.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/checkpoint/families/model_family.hpp"
#include "model/checkpoint/gguf/gguf_config.hpp"
#include "model/checkpoint/gguf/projector_config.hpp"
#include "model/checkpoint/given_model.hpp"
#include "model/checkpoint/model_error.hpp"
#include "model/checkpoint/tied_head.hpp"
#include "model/checkpoint/weight_table.hpp"

namespace pascaline {
namespace {

constexpr std::uintmax_t kMaxConfigBytes = 16U << 20U;
constexpr std::string_view kQuantization = "quantization_config";

ModelConfig read_config(const JsonNode& root) {
  const ModelFamily family = family_named(root.at("model_type"));
  if (root.has_value("quantization")) {
    root.at("quantization").fail("models quantized by MLX are not supported; take the bfloat16 checkpoint");
  }
  const FolderQuantization quantization =
      root.has_value(kQuantization) ? read_quantization(root.at(kQuantization)) : FolderQuantization::none;
  ModelConfig config = traits_of(family).read(root);
  config.quantization = quantization;
  try {
    (void)parameter_count(config);
  } catch (const ModelError& error) {
    root.fail(error.what());
  }
  return config;
}

ModelConfig load_gguf_config(const ModelLocation& model) {
  const GgufFile text = GgufFile::open(model.path);
  ModelConfig config = read_gguf_config(text);
  if (!model.projector.empty()) {
    const GgufFile projector = GgufFile::open(model.projector);
    config.vision = read_projector_config(projector, text, config);
    try {
      (void)parameter_count(config);
    } catch (const ModelError& error) {
      throw ModelError(fmt::format("{}: {}", model.projector.string(), error.what()));
    }
  }
  return config;
}

}  // namespace

std::int64_t VisionConfig::position_side() const noexcept {
  return std::llround(std::sqrt(static_cast<double>(positions)));
}

ModelConfig parse_model_config(std::string_view text, const std::string& file) {
  try {
    const nlohmann::json document = parse_json(text, file);
    return read_config(JsonNode(document, file));
  } catch (const SpaceError& error) {
    throw ModelError(error.what());
  }
}

ModelConfig load_model_config(const ModelLocation& model) {
  if (is_gguf_path(model.path)) {
    return load_gguf_config(model);
  }
  if (!model.projector.empty()) {
    throw ModelError(
        fmt::format("{}: a projector belongs to a GGUF file, and {} is a folder, which has its own vision tower; leave "
                    "out --mmproj",
                    model.projector.string(), model.path.string()));
  }
  const std::filesystem::path file = model.path / "config.json";
  ModelConfig config = parse_model_config(read_model_file(file, kMaxConfigBytes), file.string());
  untie_other_head(model.path, config);
  pass_over_adapter(model.path);
  return config;
}

}  // namespace pascaline
