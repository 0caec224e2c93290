#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/text/added_tokens.hpp"
#include "model/text/merges.hpp"
#include "model/text/split_pattern.hpp"
#include "model/text/tokenizer_file.hpp"
#include "model/text/vocabulary.hpp"

namespace pascaline {

/// What a tokenizer is made of.
// Moving it throws nothing. NOLINTNEXTLINE(bugprone-exception-escape)
struct TokenizerParts {
  Vocabulary vocabulary;
  MergeTable merges;
  ByteTokens byte_tokens{};
  std::vector<SplitPattern> patterns;   ///< each applied to the pieces of the one before
  AddedTokenMatcher verbatim;           ///< looked for in the text as it is
  AddedTokenMatcher normalised;         ///< looked for after normalisation
  std::map<TokenId, TokenSides> sides;  ///< of added tokens that have any
  std::vector<TokenId> special_ids;
  std::size_t id_count = 0;
  bool normalises = true;     ///< text to normalisation form C, before it is split
  bool whole_pieces = false;  ///< a piece that is an ordinary token is taken as it is, whatever the merges make of it
  std::optional<TokenId> beginning = {};  ///< of a text that no chat template renders
  std::string place = {};                 ///< where tokens stand, as messages name it: a file and, in GGUF, its key
};

/// Builds them from what a tokenizer.json says; see Tokenizer::parse for errors.
[[nodiscard]] TokenizerParts build_tokenizer(const TokenizerFile& contents, const std::string& file);

}  // namespace pascaline
