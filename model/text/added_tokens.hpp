#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/vocabulary.hpp"

namespace pascaline {

/// How an added token lies in a text.
struct TokenSides {
  bool single_word = false;  ///< no other word's character may be beside it
  bool strips_left = false;  ///< white space before it belongs to it
  bool strips_right = false;
};

/// Finds tokens that are matched as whole words of a text, before anything is split or merged.
class AddedTokenMatcher {
 public:
  /// `content` is not empty.
  void add(std::string content, TokenId id, TokenSides sides = {});
  /// Walks the text from left to right: `on_text` for what lies between, `on_token` for each token found. Where several
  /// begin at one place, the longest is taken; if it is part of a word and may not be, it is text. Follows the Python
  /// package tokenizers.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(TokenId)>& on_token) const;

 private:
  struct Entry {
    std::string content;
    TokenId id;
    TokenSides sides;
  };
  [[nodiscard]] const Entry* longest_at(std::string_view rest) const;

  std::array<std::vector<Entry>, 256> by_first_byte_;  // longest first
};

}  // namespace pascaline
