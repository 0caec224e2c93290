#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/util/json_reader.hpp"

namespace pascaline {

/// How a tokenizer.json has text treated before its merges.
struct TextSplitting {
  struct Pattern {
    std::string text;
    std::string place;  ///< JSON pointer
  };
  std::vector<Pattern> patterns;  ///< each applied to the pieces of the one before
  bool normalises = false;        ///< to normalisation form C, first
  bool whole_pieces = false;      ///< a piece that is a token is taken as it is, whatever the merges make of it
};

/// Of the document `root`, whose vocabulary is not looked at. Throws SpaceError naming the place for a tokenizer that
/// splits or normalises text in another way than by patterns, digits and the words of GPT-2, and form C.
[[nodiscard]] TextSplitting read_text_splitting(const JsonNode& root);

/// The token that a text begins with, if `post_processor` adds one. Throws SpaceError naming the place for other
/// additions.
[[nodiscard]] std::optional<std::int64_t> read_beginning(const JsonNode& root);

/// Throws SpaceError naming the place for a tokenizer that is no byte-level BPE, or has settings that would change what
/// its merges give.
void check_bpe_settings(const JsonNode& root);

/// Throws SpaceError naming the place if there is an unknown token, which would stand for bytes that have none.
void check_no_unknown_token(const JsonNode& root);

}  // namespace pascaline
