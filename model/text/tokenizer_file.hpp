#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace pascaline {

/// What a tokenizer.json says, not yet checked beyond its form.
// Moving JSON throws nothing. NOLINTNEXTLINE(bugprone-exception-escape)
struct TokenizerFile {
  nlohmann::json settings;  ///< the document, with null in place of /model/vocab and /model/merges
  std::vector<std::pair<std::string, std::int64_t>> vocabulary;  ///< /model/vocab in the file's order
  std::vector<std::pair<std::string, std::string>> merges;       ///< /model/merges, from "a b" or ["a", "b"]
};

/// Reads the text of a tokenizer.json in one pass. Throws SpaceError with `file` and JSON pointer: no JSON, a key that
/// occurs twice (in the vocabulary the builder finds it), nesting beyond 64 levels, a vocabulary that is no object of
/// integers, a merge that is not two tokens.
[[nodiscard]] TokenizerFile read_tokenizer_file(std::string_view text, const std::string& file);

}  // namespace pascaline
