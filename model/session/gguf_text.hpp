#pragma once

#include <cstddef>
#include <string_view>

#include "model/checkpoint/gguf/gguf_file.hpp"
#include "model/text/chat.hpp"
#include "model/text/gguf_tokenizer.hpp"

namespace pascaline {

/// Whether they describe a tokenizer: not if they say nothing, or that there is none.
[[nodiscard]] bool has_gguf_tokenizer(const GgufMetadata& metadata);

/// What the metadata say of the tokenizer; texts point into the file. Throws ModelError (file and key) if a key has
/// another type; what the values mean is not checked.
[[nodiscard]] GgufTokenizerData gguf_tokenizer_data(const GgufMetadata& metadata);

/// The tokenizer of a GGUF file; `embedding_rows` as for Tokenizer::load. Throws ModelError as above and Error as
/// build_gguf_tokenizer does.
[[nodiscard]] GgufTokenizer load_gguf_tokenizer(const GgufMetadata& metadata, std::size_t embedding_rows = 0);

/// The chat template of a GGUF file, or the one that `named` names if it is not empty. Errors as those of
/// gguf_chat_template.
[[nodiscard]] ChatTemplate load_gguf_chat_template(const GgufMetadata& metadata, std::string_view named = {});

}  // namespace pascaline
