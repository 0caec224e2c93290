#pragma once

#include <string>
#include <string_view>

#include "model/checkpoint/hf/generation_config.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/image/preprocessor_config.hpp"

namespace pascaline {

/// The key of config.json that keeps the name by which people know a model.
inline constexpr const char* kNameKey = "_name_or_path";

/// Texts of a model folder's files. `numbers` is what most weights are stored as, as Transformers names it; `name` is
/// for people, and may be empty.
[[nodiscard]] std::string config_text(const ModelConfig& config, const GenerationConfig& generation,
                                      std::string_view numbers, std::string_view name);
/// Only what is recommended, with the ends of answers.
[[nodiscard]] std::string generation_config_text(const GenerationConfig& generation);
[[nodiscard]] std::string preprocessor_config_text(const PreprocessorConfig& config);

}  // namespace pascaline
