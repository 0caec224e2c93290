#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pascaline {

// Names and reasons come out of files that anyone may have written, and a terminal takes some of their bytes for
// commands. What is shown of them goes through one of these, which also bound it: no file makes a line endless.

/// Bytes of a name in a table, of a line, and of several lines that are shown at most.
inline constexpr std::size_t kMaxShownName = 200;
inline constexpr std::size_t kMaxShownLine = 2000;
inline constexpr std::size_t kMaxShownText = std::size_t{16} << 10;

/// The text if it has at most so many bytes, else its beginning and its end with how much is left out between them,
/// which may be some bytes more than `most`.
[[nodiscard]] std::string bounded(std::string_view text, std::size_t most);

/// The text with U+FFFD for what is not UTF-8, and for separators of lines and marks of direction (U+2028 to U+202E,
/// U+2066 to U+2069, U+200E, U+200F, U+061C).
[[nodiscard]] std::string shown_text(std::string_view text);

/// `shown_text` on one line of at most `most` bytes, with a space for each control character.
[[nodiscard]] std::string clean_line(std::string_view text, std::size_t most = kMaxShownLine);

/// A model's text for a terminal: with U+FFFD for each control character but tabs and ends of lines. Nothing else of it
/// changes.
[[nodiscard]] std::string terminal_text(std::string_view text);

/// `clean_line` of a name.
[[nodiscard]] inline std::string clean_name(std::string_view name) { return clean_line(name, kMaxShownName); }

/// `clean_line` of each of its lines, of at most `kMaxShownText` together.
[[nodiscard]] std::string clean_lines(std::string_view text);

}  // namespace pascaline
