#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pascaline {

/// What a fault of the JSON library says, without the library's own name and number for it, which stand before it in
/// brackets.
[[nodiscard]] inline std::string json_words(const nlohmann::json::exception& fault) {
  const std::string_view words = fault.what();
  const std::size_t end = words.find("] ");
  return std::string(words.substr(words.starts_with("[json.exception") && end != words.npos ? end + 2 : 0));
}

}  // namespace pascaline
