#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "model/text/tokenizer.hpp"

namespace pascaline {

/// Tokens that end an answer as the tokenizer has it, for a model whose configuration names none: `eos_token` of
/// `folder`/tokenizer_config.json, if there is such a file, and those that end a turn or a text in the supported
/// families. Empty if the tokenizer has none of them. Throws SpaceError if the file is no JSON, or the key of another
/// type.
[[nodiscard]] std::vector<TokenId> end_tokens(const std::filesystem::path& folder, const Tokenizer& tokenizer);

/// The token that `bos_token` of `folder`/tokenizer_config.json names, if there is such a file and token. Throws
/// likewise.
[[nodiscard]] std::optional<TokenId> named_beginning(const std::filesystem::path& folder, const Tokenizer& tokenizer);

/// Tokens that end an answer of a model in a GGUF file: those that its metadata names, in order, and then those special
/// tokens of the tokenizer that end a turn or a text in the supported families; none is there twice.
[[nodiscard]] std::vector<TokenId> gguf_end_tokens(const Tokenizer& tokenizer, std::span<const TokenId> named);

}  // namespace pascaline
