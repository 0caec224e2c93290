#pragma once

#include <string_view>

namespace pascaline {

/// Whether the text is UTF-8 without overlong forms, surrogates and codes beyond U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace pascaline
