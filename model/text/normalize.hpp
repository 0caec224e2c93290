#pragma once

#include <string>
#include <string_view>

namespace pascaline {

/// Unicode normalisation form C of a text that is valid UTF-8 (NUL characters are fine). Takes n log n time also for
/// a long run of combining marks. The Unicode version is utf8proc's; the Python package tokenizers 0.23 orders some 70
/// rare combining marks that came after Unicode 9 otherwise. Throws Error if the text is not valid UTF-8.
[[nodiscard]] std::string nfc(std::string_view text);

}  // namespace pascaline
