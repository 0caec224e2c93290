#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/vocabulary.hpp"

namespace pascaline {

/// Finds tokens that are matched as whole words of a text, before anything is split or merged.
class AddedTokenMatcher {
 public:
  /// `content` is not empty.
  void add(std::string content, TokenId id);
  /// Walks the text from left to right: `on_text` for what lies between, `on_token` for each token found. Where several
  /// begin at one place, the longest is taken.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(TokenId)>& on_token) const;

 private:
  struct Entry {
    std::string content;
    TokenId id;
  };
  [[nodiscard]] const Entry* longest_at(std::string_view rest) const;

  std::array<std::vector<Entry>, 256> by_first_byte_;  // longest first
};

}  // namespace pascaline
