#pragma once

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/checkpoint/hf/generation_config.hpp"
#include "model/checkpoint/model_config.hpp"

namespace pascaline {

/// How a GGUF file's makers want its tokens drawn (`general.sampling.…`), where they say it; of what they leave
/// out `neutral_generation`, or the defaults of GenerationConfig if they say nothing. Ends of answers are those of
/// `config`. Throws ModelError (file and key) for what is of another type, out of range or not supported, for other
/// ways of drawing tokens, and for ids of special tokens that are not in the vocabulary.
[[nodiscard]] GenerationConfig read_gguf_generation(const GgufMetadata& metadata, const ModelConfig& config);

}  // namespace pascaline
