#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pascaline {

/// What a fault of the JSON library says, without the library's own name and number for it, which stand before it in
/// brackets.
[[nodiscard]] inline std::string json_words(std::string_view words) {
  const std::size_t end = words.find("] ");
  return std::string(words.substr(words.starts_with("[json.exception") && end != words.npos ? end + 2 : 0));
}
[[nodiscard]] inline std::string json_words(const nlohmann::json::exception& fault) { return json_words(fault.what()); }

}  // namespace pascaline
