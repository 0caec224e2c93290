#pragma once

#include <span>
#include <string_view>

namespace pascaline {

/// How a family of byte-level tokenizers treats text before its merges, by the name that GGUF files give it
/// (`tokenizer.ggml.pre`).
struct PreTokenizer {
  std::string_view name;
  /// Split patterns, each applied to the pieces of the one before.
  std::span<const std::string_view> patterns;
  bool normalises = false;    ///< to normalisation form C, first
  bool whole_pieces = false;  ///< a piece that is a token is taken as it is, whatever the merges make of it
  bool adds_bos = false;      ///< a text begins with the token of beginning, where the file does not say
};

/// The family of that name, or null.
[[nodiscard]] const PreTokenizer* find_pre_tokenizer(std::string_view name) noexcept;

/// All of them.
[[nodiscard]] std::span<const PreTokenizer> pre_tokenizers() noexcept;

}  // namespace pascaline
