#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pascaline {

/// What the bytes at the beginning of a text are.
struct Utf8Step {
  enum class Kind {
    character,   ///< `code` in `bytes` bytes
    invalid,     ///< `bytes` bytes that no continuation can make a character
    incomplete,  ///< the whole text is the beginning of a character, `bytes` long
  };
  Kind kind = Kind::invalid;
  std::size_t bytes = 0;
  char32_t code = 0;
};

/// U+FFFD in UTF-8: what stands for bytes that are none.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// The first character of a text that is not empty. Bytes that are no character come as their maximal subparts
/// (Unicode 15, section 3.9, table 3-8): each is to be replaced by one U+FFFD. Overlong forms, surrogates and what
/// lies beyond U+10FFFF are invalid.
[[nodiscard]] Utf8Step next_utf8(std::string_view text) noexcept;

/// Appends the character; `code` must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code);

/// The text with one U+FFFD for each maximal subpart that is no UTF-8, also where the text ends within a character.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace pascaline
