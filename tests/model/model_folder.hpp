#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/checkpoint/model_config.hpp"

namespace pascaline::testing {

/// A config.json that describes the model.
[[nodiscard]] nlohmann::json config_json(const ModelConfig& config);

/// Writes config.json and, from hashed weights, model.safetensors.
void write_model(const std::filesystem::path& folder, const ModelConfig& config);

/// Writes a whole model folder: a small model with the tests' own tokenizer, images in patches of 4 x 4 pixels.
/// Returns its configuration.
ModelConfig write_model_folder(const std::filesystem::path& folder);
/// Gives the tokenizer in such a folder a token that stands for videos, by which GGUF files tell its id.
void name_video_token(const std::filesystem::path& folder);
/// The same of a model that only reads text, Qwen3; it has no preprocessor.
ModelConfig write_text_model_folder(const std::filesystem::path& folder);
/// Likewise of the family llama, with SmolLM2's chat template.
ModelConfig write_llama_folder(const std::filesystem::path& folder);

}  // namespace pascaline::testing
