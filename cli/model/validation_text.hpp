#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/session/model_folder.hpp"
#include "model/text/tokenizer.hpp"

namespace pascaline::cli {

/// Tokens that two models are compared on: passages that have nothing to do with each other.
using Passages = std::vector<std::vector<TokenId>>;

/// Part of a passage that a model reads from an empty context.
struct TextWindow {
  std::int64_t first = 0;  ///< number of its first token among those of all passages
  std::span<const TokenId> tokens;
  std::optional<TokenId> following;  ///< what comes after it in its passage

  /// What comes after its token of that index.
  [[nodiscard]] std::optional<TokenId> next_of(std::size_t index) const {
    return index + 1 < tokens.size() ? std::optional(tokens[index + 1]) : following;
  }
};

/// The text of a file as one passage of at most `most` tokens, as the model encodes plain text. Throws Error for a file
/// that cannot be read, is empty or not UTF-8, or has fewer than two tokens.
[[nodiscard]] Passages read_passage(const ModelFolder& model, const std::filesystem::path& file, std::int64_t most);

/// What is compared on without a file: short texts of several kinds.
[[nodiscard]] std::span<const std::string_view> usual_texts() noexcept;
[[nodiscard]] Passages usual_passages(const ModelFolder& model);

[[nodiscard]] std::int64_t count_tokens(const Passages& passages) noexcept;

/// Each passage in windows of at most `length` tokens; they point into it.
[[nodiscard]] std::vector<TextWindow> windows_of(const Passages& passages, std::int64_t length);

}  // namespace pascaline::cli
