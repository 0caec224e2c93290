#pragma once

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/model_config.hpp"

namespace pascaline {

/// The text model that a GGUF file's metadata describes, of the architectures qwen3, qwen3vl and llama. Nothing that
/// may change results is passed over: throws ModelError naming file and key for what is missing, impossible, not
/// supported or, below the architecture's name, not known.
[[nodiscard]] ModelConfig read_gguf_config(const GgufFile& file);

/// Checks what any GGUF file may say of itself: `general.file_type` is an integer. Throws
/// ModelError (file and key) for another type.
void check_general_keys(const GgufMetadata& metadata);

}  // namespace pascaline
