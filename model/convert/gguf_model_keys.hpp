#pragma once

#include <optional>
#include <span>

#include "model/checkpoint/gguf/gguf_writer.hpp"
#include "model/checkpoint/hf/generation_config.hpp"
#include "model/checkpoint/model_config.hpp"
#include "model/convert/tensor_writing.hpp"
#include "model/image/preprocessor_config.hpp"

namespace pascaline {

/// The number that all frequencies of rotary embedding are divided by, if it is one and not 1.
[[nodiscard]] std::optional<float> linear_rope_factor(const TextConfig& text);

/// What a GGUF file of a text model says of it, but for its tokens: architecture, sizes, how its makers want tokens
/// drawn. `name` is for people. Frequencies of rotary embedding that are divided by several numbers are not in it.
[[nodiscard]] GgufKeys text_model_keys(const ModelConfig& config, const GenerationConfig& generation,
                                       std::string_view name, std::span<const WrittenTensor> tensors);

/// What the file of its projector says.
[[nodiscard]] GgufKeys projector_keys(const ModelConfig& config, const PreprocessorConfig& images,
                                      std::string_view name, std::span<const WrittenTensor> tensors);

}  // namespace pascaline
