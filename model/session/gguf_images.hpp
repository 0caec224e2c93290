#pragma once

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/image/preprocessor_config.hpp"

namespace pascaline {

/// Tokens that an image becomes at least and at most where a projector's file does not say how many pixels it may have:
/// llama.cpp's limits for this kind of projector.
inline constexpr std::int64_t kMinProjectorTokens = 8;
inline constexpr std::int64_t kMaxProjectorTokens = 4096;

/// How a projector's file has images prepared for the tower that `vision` describes. Throws ModelError (file and key)
/// for what is missing, of another type or out of range.
[[nodiscard]] PreprocessorConfig gguf_preprocessor(const GgufMetadata& metadata, const VisionConfig& vision);

}  // namespace pascaline
