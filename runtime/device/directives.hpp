#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pascaline {

/// A preprocessor line: its name and what follows, continuation lines joined, each comment a space.
struct Directive {
  std::string name;  ///< "include"
  std::string text;  ///< "\"a.cuh\""
};

/// Those of a source in every branch. None is in a comment or a string, a raw one among them.
[[nodiscard]] std::vector<Directive> directives_of(std::string_view source);

/// A word or number, a string with its quotes, or a sign.
struct CodeToken {
  std::string text;
  bool spaced = false;                ///< white space is in front
  std::vector<std::string> hidden{};  ///< macros that it came from, which do not expand in it again
};

/// A source with a space in place of each comment.
[[nodiscard]] std::string without_comments(std::string_view source);

/// Those of text without comments.
[[nodiscard]] std::vector<CodeToken> tokens_of(std::string_view text);

}  // namespace pascaline
