#pragma once

#include <cstddef>
#include <filesystem>

#include "model/text/tokenizer_file.hpp"

namespace pascaline {

/// Reads `file`, a tokenizer.json, and adds to its `added_tokens` those that the files beside it name, with their flags
/// and by the rules of Transformers 5: `added_tokens_decoder` of tokenizer_config.json; without that key
/// special_tokens_map.json and added_tokens.json; and the special tokens that tokenizer_config.json names. Warns (see
/// `pass_over`) of tokens that get another id than they name, of those that the model's `embedding_rows` (0: unknown)
/// have no room for, and of settings that are not applied. Throws SpaceError as `read_tokenizer_file`.
[[nodiscard]] TokenizerFile load_tokenizer_file(const std::filesystem::path& file, std::size_t embedding_rows);

}  // namespace pascaline
