#pragma once

#include <filesystem>

#include "model/checkpoint/gguf/gguf_writer.hpp"
#include "model/checkpoint/hf/generation_config.hpp"
#include "model/checkpoint/model_config.hpp"

namespace pascaline {

/// Adds what a GGUF file says of a model's tokens, from the tokenizer.json and the chat template of its folder, as far
/// as there are some: without a tokenizer, only which tokens end an answer. Throws SpaceError naming file and place for
/// a tokenizer that GGUF has no name for or that is damaged; ModelError for a model without a tokenizer whose images
/// other tokens than those of the released models stand for, which a GGUF file cannot say.
void add_tokenizer_keys(GgufKeys& keys, const std::filesystem::path& folder, const ModelConfig& config,
                        const GenerationConfig& generation);

}  // namespace pascaline
