#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/model_config.hpp"

namespace pascaline {

/// `general.architecture` of projectors, and the kind of them that is read (`clip.projector_type`): that of Qwen3-VL.
inline constexpr std::string_view kProjectorArchitecture = "clip";
inline constexpr std::string_view kProjectorType = "qwen3vl_merger";

/// Images do without this one.
inline constexpr std::string_view kVideoTokenText = "<|video_pad|>";
/// Tokens that stand for images and what is around them, in the order image, video, start, end; and their ids in the
/// released models, which count where a text model's file names no tokens at all.
struct ImageToken {
  std::string_view text;
  std::int64_t released;
};
inline constexpr std::array<ImageToken, 4> kImageTokens{
    {{"<|image_pad|>", 151655}, {kVideoTokenText, 151656}, {"<|vision_start|>", 151652}, {"<|vision_end|>", 151653}}};

/// The vision tower of a projector's file for the text model of `text`, whose configuration is `config`. The tokens
/// that stand for images are those that the text model's tokens name. Nothing that may change results is passed over:
/// throws ModelError naming file and key for what is missing, impossible, not supported, not known, or of another model
/// than the text's, and if one of the files is not what it was given as.
[[nodiscard]] VisionConfig read_projector_config(const GgufFile& projector, const GgufFile& text,
                                                 const ModelConfig& config);

}  // namespace pascaline
