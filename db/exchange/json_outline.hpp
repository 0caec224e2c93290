#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace pascaline {

/// What a look at a JSON text tells before it is parsed: texts of other tuners may be cut off, or have numbers that
/// JSON has not.
struct JsonOutline {
  std::string text;                           ///< with NaN, Infinity and -Infinity as strings of the same length
  std::vector<std::string> keys;              ///< of the outermost object, as they are written
  bool closed = false;                        ///< every bracket and string has its end
  std::size_t cache_end = std::string::npos;  ///< behind the last whole object in the outermost object's "cache"

  [[nodiscard]] bool has(std::string_view key) const;
  /// The text, or if it is cut off inside its "cache", the text up to its last whole entry, completed.
  [[nodiscard]] std::string completed() const;
};

[[nodiscard]] JsonOutline outline_json(std::string_view text);

/// What NaN, Infinity or -Infinity in the text became ("NaN", "Infinity" or "-Infinity"); nothing for another value.
[[nodiscard]] std::optional<std::string_view> unreal_number(const nlohmann::json& value);

}  // namespace pascaline
