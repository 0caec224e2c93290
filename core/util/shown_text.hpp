#pragma once

#include <string>
#include <string_view>

namespace pascaline {

// Names and reasons come out of files that anyone may have written, and a terminal takes some of their bytes for
// commands. What is shown of them goes through one of these.

/// The text with U+FFFD for what is not UTF-8, and for separators of lines and marks of direction (U+2028 to U+202E,
/// U+2066 to U+2069, U+200E, U+200F, U+061C).
[[nodiscard]] std::string shown_text(std::string_view text);

/// `shown_text` on one line, with a space for each control character.
[[nodiscard]] std::string clean_line(std::string_view text);

/// A model's text for a terminal: with U+FFFD for each control character but tabs and ends of lines. Nothing else of it
/// changes.
[[nodiscard]] std::string terminal_text(std::string_view text);

/// `clean_line` of each of its lines.
[[nodiscard]] std::string clean_lines(std::string_view text);

}  // namespace pascaline
