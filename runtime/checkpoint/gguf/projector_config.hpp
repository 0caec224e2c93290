#pragma once

#include <string_view>

#include "runtime/checkpoint/gguf/gguf_file.hpp"
#include "runtime/checkpoint/model_config.hpp"

namespace pascaline {

/// `general.architecture` of projectors, and the kind of them that is read (`clip.projector_type`): that of Qwen3-VL.
inline constexpr std::string_view kProjectorArchitecture = "clip";
inline constexpr std::string_view kProjectorType = "qwen3vl_merger";

/// The vision tower of a projector's file for the text model of `text`, whose configuration is `config`. The tokens
/// that stand for images are those that the text model's tokens name. Nothing that may change results is passed over:
/// throws ModelError naming file and key for what is missing, impossible, not supported, not known, or of another model
/// than the text's, and if one of the files is not what it was given as.
[[nodiscard]] VisionConfig read_projector_config(const GgufFile& projector, const GgufFile& text,
                                                 const ModelConfig& config);

}  // namespace pascaline
