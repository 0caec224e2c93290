#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pascaline {

/// Bytes of a token as byte-level vocabularies spell it: a visible character for each byte (bytes 21–7E, A1–AC and
/// AE–FF are the characters of the same number, the others in order are U+0100 to U+0143). Nothing if a character is
/// none of these.
[[nodiscard]] std::optional<std::string> bytes_of_spelling(std::string_view spelling);

/// The spelling of these bytes in a byte-level vocabulary.
[[nodiscard]] std::string spelling_of_bytes(std::string_view bytes);

}  // namespace pascaline
