#pragma once

#include <string>
#include <string_view>

#include "runtime/checkpoint/generation_config.hpp"
#include "runtime/checkpoint/model_config.hpp"
#include "runtime/image/preprocessor_config.hpp"

namespace pascaline {

/// Texts of a model folder's files. `numbers` is what most weights are stored as, as Transformers names it.
[[nodiscard]] std::string config_text(const ModelConfig& config, const GenerationConfig& generation,
                                      std::string_view numbers);
[[nodiscard]] std::string generation_config_text(const GenerationConfig& generation);
[[nodiscard]] std::string preprocessor_config_text(const PreprocessorConfig& config);

}  // namespace pascaline
