#pragma once

#include <string_view>

namespace pascaline {

/// Tells whether the text may be Problem::data of given contents.
[[nodiscard]] inline bool is_data_hash(std::string_view text) noexcept {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace pascaline
