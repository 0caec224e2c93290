#pragma once

#include <cstddef>
#include <string_view>

namespace pascaline {

/// Unicode's White_Space.
[[nodiscard]] bool is_white_space(char32_t code) noexcept;

/// Bytes of white space that a text begins or ends with; it must be valid UTF-8, as for all below.
[[nodiscard]] std::size_t leading_space(std::string_view text) noexcept;
[[nodiscard]] std::size_t trailing_space(std::string_view text) noexcept;

/// Whether a text begins or ends with a character of a word: `\w` of Unicode's regular expressions (UTS 18).
[[nodiscard]] bool begins_with_word(std::string_view text) noexcept;
[[nodiscard]] bool ends_with_word(std::string_view text) noexcept;

}  // namespace pascaline
