#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/gguf/gguf_file.hpp"

namespace pascaline {

/// Texts of a model folder's files about its tokens, as far as the metadata of a GGUF file have what is in them.
struct TokenizerFiles {
  std::string tokenizer;                     ///< tokenizer.json
  std::string config;                        ///< tokenizer_config.json
  std::optional<std::string> chat_template;  ///< chat_template.jinja
  std::vector<std::int64_t> ends;            ///< tokens that end an answer
};

/// Nothing without a tokenizer. Throws Error (file and key) for one that is damaged or of a kind that is not known.
[[nodiscard]] std::optional<TokenizerFiles> tokenizer_files(const GgufMetadata& metadata, std::int64_t embedding_rows);

}  // namespace pascaline
